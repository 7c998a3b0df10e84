//! Numbers as people read them.

/// Formats a share from 0 to 1 as a percentage without decimals.
pub(super) fn percent(share: f64) -> String {
    // Only what is complete is shown as complete.
    let percent = (share * 100.0).round();
    let percent = if share < 1.0 { percent.min(99.0) } else { percent };
    let percent = if share > 0.0 { percent.max(1.0) } else { percent };
    format!("{percent} %")
}

/// Formats a duration in seconds.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        short if short < 0.001 => format!("{:.0} µs", short * 1e6),
        short if short < 1.0 => format!("{:.0} ms", short * 1e3),
        medium if medium < 60.0 => format!("{medium:.1} s"),
        long if long < 3600.0 => format!("{} min {} s", (long / 60.0).floor(), (long % 60.0).floor()),
        long => format!("{} h {} min", (long / 3600.0).floor(), (long % 3600.0 / 60.0).floor()),
    }
}

/// Formats an amount of US dollars. Small amounts have more digits.
pub(super) fn dollars(dollars: f64) -> String {
    match dollars {
        small if small > 0.0 && small < 0.01 => format!("${small:.6}"),
        medium if medium > 0.0 && medium < 0.1 => format!("${medium:.3}"),
        large => format!("${large:.2}"),
    }
}

/// Formats a number with the word for what is counted.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_but_never_to_everything_or_nothing() {
        let percents: Vec<String> = [0.0, 0.001, 0.5655, 0.999, 1.0].map(percent).to_vec();
        assert_eq!(percents, ["0 %", "1 %", "57 %", "99 %", "100 %"]);
        let times: Vec<String> = [0.0, 0.000_25, 0.25, 1.25, 59.9, 61.0, 3725.0].map(seconds).to_vec();
        assert_eq!(times, ["0 µs", "250 µs", "250 ms", "1.2 s", "59.9 s", "1 min 1 s", "1 h 2 min"]);
        assert_eq!([0.0, 0.000_12, 0.0168, 0.5].map(dollars), ["$0.00", "$0.000120", "$0.017", "$0.50"]);
        assert_eq!((counted(1, "case"), counted(2, "case")), ("1 case".to_owned(), "2 cases".to_owned()));
    }
}
