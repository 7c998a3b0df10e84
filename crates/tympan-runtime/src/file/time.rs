//! Formats points in time in UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time in UTC, displayed as `2026-02-22T02:41:03Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    microsecond: u32,
}

impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_unix(since.as_secs(), since.subsec_micros())
    }
}

impl UtcTime {
    fn from_unix(seconds: u64, microsecond: u32) -> Self {
        let (mut days, time) = (seconds / 86_400, seconds % 86_400);
        let is_leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
        let mut year = 1970;
        loop {
            let length = if is_leap(year) { 366 } else { 365 };
            if days < length {
                break;
            }
            days -= length;
            year += 1;
        }
        let february = if is_leap(year) { 29 } else { 28 };
        let mut month = 1;
        for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
            if days < length {
                break;
            }
            days -= length;
            month += 1;
        }
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        Self { year, month, day: days + 1, hour, minute, second, microsecond }
    }

    /// Formats the time as `20260222.024103`, for file names.
    pub fn compact(&self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}.{hour:02}{minute:02}{second:02}")
    }

    /// Formats the time as `2026-02-22T02:41:03.000125Z`, with microseconds.
    pub fn precise(&self) -> String {
        let seconds = self.to_string();
        format!("{}.{:06}Z", seconds.trim_end_matches('Z'), self.microsecond)
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, .. } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::UtcTime;

    #[test]
    fn times_are_written_as_people_read_them() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_771_728_063, "2026-02-22T02:41:03Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(UtcTime::from_unix(seconds, 0).to_string(), expected);
        }
        let time = UtcTime::from_unix(1_771_728_063, 125);
        assert_eq!(time.compact(), "20260222.024103");
        assert_eq!(time.precise(), "2026-02-22T02:41:03.000125Z");
    }
}
