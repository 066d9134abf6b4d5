//! Aligned tables, and numbers as people read them.

use std::io::{self, Write};

/// Writes rows under their header; the first column to the left, all others to
/// the right.
pub fn write_table(out: &mut dyn Write, header: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let header: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    let all = || std::iter::once(&header).chain(rows);
    let width = |column: usize| {
        all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in all() {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            match column {
                0 => line.push_str(&format!("{cell:<width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A time with its unit and three significant digits or more.
pub fn time(ns: f64) -> String {
    let (scale, unit) = match ns {
        _ if ns < 1e3 => (1.0, "ns"),
        _ if ns < 1e6 => (1e3, "us"),
        _ if ns < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", number(ns / scale))
}

/// A number with three significant digits or more.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Geometric mean, the right one for ratios; not a number without any.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let (mut logs, mut count) = (0.0, 0);
    for ratio in ratios {
        logs += ratio.ln();
        count += 1;
    }
    (logs / f64::from(count)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut out = Vec::new();
        write_table(&mut out, &["name", "n"], &[row(["a", "1000"]), row(["long name", "2"])])
            .unwrap();
        let expected = "name          n\na          1000\nlong name     2\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time(4.25), "4.25 ns");
        assert_eq!(time(123.4), "123 ns");
        assert_eq!(time(12_340.0), "12.3 us");
        assert_eq!(time(5e6), "5.00 ms");
        assert_eq!(time(2.5e9), "2.50 s");
    }

    #[test]
    fn geometric_mean_is_the_root_of_the_product() {
        assert!((geometric_mean([2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert!(geometric_mean([]).is_nan());
    }
}
