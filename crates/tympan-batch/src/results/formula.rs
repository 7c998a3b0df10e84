//! Text that a spreadsheet would run as a formula.

/// The characters with which formulas begin, and those that spreadsheets skip before them. The last four are the
/// full-width forms that some of them accept as well.
const BEGINNINGS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Returns whether a spreadsheet may take a cell for a formula. Numbers, such as `-5`, are none.
pub(super) fn is_formula(cell: &str) -> bool {
    cell.starts_with(BEGINNINGS) && !is_number(cell)
}

/// Returns a cell with an apostrophe before it, which spreadsheets take for text.
pub(super) fn escaped(cell: &str) -> String {
    format!("'{cell}")
}

fn is_number(cell: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    cell.bytes().all(is_part) && cell.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_told_from_numbers() {
        for cell in ["=1+2", "+1-2", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "-inf", "+nan", "-1 ", "--1"] {
            assert!(is_formula(cell), "{cell:?}");
        }
        for cell in ["", "a=1", "1", "-5", "+3.5e4", "-.5", " x", "'=1"] {
            assert!(!is_formula(cell), "{cell:?}");
        }
    }
}
