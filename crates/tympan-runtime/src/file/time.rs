//! Formats and parses points in time in UTC.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

    /// Parses a time with its zone, such as `2026-02-22T02:41:03Z` or `2026-02-22 03:41:03.5+01:00`. Returns `None` if
    /// it is invalid, before 1970, or has no zone. Fractions of a second are ignored.
    pub fn parse(text: &str) -> Option<SystemTime> {
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
        };
        let is = |at: usize, chars: &[u8]| text.as_bytes().get(at).is_some_and(|byte| chars.contains(byte));
        if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
            return None;
        }
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let rest = text.get(19..)?;
        let zone =
            rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|char: char| char.is_ascii_digit()));
        let offset = match zone {
            "Z" | "z" => 0,
            _ => {
                let sign = if zone.starts_with('-') { -1 } else { 1 };
                let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
                sign * (hours.parse::<u16>().ok()?.min(99) as i64 * 3600
                    + minutes.parse::<u16>().ok()?.min(59) as i64 * 60)
            }
        };
        // Count years from March, so that the leap day is the last day of a year.
        let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days = march_year.div_euclid(4) - march_year.div_euclid(100) + march_year.div_euclid(400);
        // The days from the first of March of the year 0 to the first of January 1970 are 719,468.
        let days = march_year * 365 + leap_days + (march_month * 153 + 2) / 5 + day - 1 - 719_468;
        let since = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
        UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(since).ok()?))
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
    use super::*;

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

    #[test]
    fn times_are_parsed_with_their_zone() {
        for seconds in [0, 951_782_400, 951_868_799, 1_771_728_063, 4_107_542_399, 4_107_542_400] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(UtcTime::parse(&UtcTime::from(time).to_string()), Some(time));
            assert_eq!(UtcTime::parse(&UtcTime::from(time).precise()), Some(time));
        }
        let same = ["2026-02-22T02:41:03Z", "2026-02-22 03:41:03.25+01:00", "2026-02-21T21:11:03-05:30"];
        for text in same {
            assert_eq!(UtcTime::parse(text), Some(UNIX_EPOCH + Duration::from_secs(1_771_728_063)), "{text}");
        }
        for text in [
            "",
            "2026-02-22",
            "2026-02-22T02:41:03",
            "2026-13-22T02:41:03Z",
            "1969-12-31T23:59:59Z",
            "2026-02-22T02:41:03+1",
            "ä026-02-22T02:41:03Z",
        ] {
            assert_eq!(UtcTime::parse(text), None, "{text}");
        }
    }
}
