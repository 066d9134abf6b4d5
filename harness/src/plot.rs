//! Curves as SVG, in panels one below the other, all axes logarithmic.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::error::Error;

const WIDTH: u32 = 960;
const HEIGHT: u32 = 440;

/// Curves over the same axes.
pub struct Panel {
    /// The title.
    pub title: String,
    /// The names of the axes, with units.
    pub x: &'static str,
    pub y: &'static str,
    pub curves: Vec<Curve>,
}

/// One curve.
pub struct Curve {
    /// The name in the legend.
    pub label: String,
    /// Curves of one number have one colour.
    pub color: usize,
    pub dashed: bool,
    /// Positive numbers.
    pub points: Vec<(f64, f64)>,
}

/// The text of the drawing.
pub fn svg(panels: &[Panel]) -> Result<String, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Plot { reason: error.to_string() };
    let mut text = String::new();
    {
        let size = (WIDTH, HEIGHT * panels.len() as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(|error| failed(&error))?;
        for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(panels) {
            draw(area, panel).map_err(|error| failed(&error))?;
        }
        root.present().map_err(|error| failed(&error))?;
    }
    Ok(text)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    panel: &Panel,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points).copied();
    let range = |value: fn((f64, f64)) -> f64| {
        let (low, high) = points()
            .map(value)
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
        // A range without points, or with one, has a width, too.
        if low <= high { low * 0.9..high * 1.1 } else { 1.0..10.0 }
    };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .right_y_label_area_size(150)
        .build_cartesian_2d(
            range(|point| point.0).log_scale(),
            range(|point| point.1).log_scale(),
        )?;
    chart.configure_mesh().x_desc(panel.x).y_desc(panel.y).light_line_style(WHITE).draw()?;
    for curve in &panel.curves {
        let style = Palette99::pick(curve.color).stroke_width(2);
        let points = curve.points.iter().copied();
        let drawn = match curve.dashed {
            true => chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
            false => chart.draw_series(LineSeries::new(points, style))?,
        };
        let width = if curve.dashed { 8 } else { 18 };
        drawn
            .label(&curve.label)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + width, y)], style));
    }
    let legend = SeriesLabelPosition::Coordinate((WIDTH - 320) as i32, 0);
    chart.configure_series_labels().position(legend).background_style(WHITE).draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_curve_is_drawn_and_named() {
        let curve = |label: &str, dashed| Curve {
            label: label.to_owned(),
            color: 0,
            dashed,
            points: vec![(1.0, 10.0), (10.0, 20.0)],
        };
        let curves = vec![curve("one", false), curve("two", true)];
        let panel = Panel { title: "Two curves".to_owned(), x: "limit", y: "ns", curves };
        let empty = Panel { title: "None".to_owned(), x: "limit", y: "ns", curves: vec![] };
        let text = svg(&[panel, empty]).unwrap();
        for name in ["Two curves", "one", "two", "None", "limit"] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
