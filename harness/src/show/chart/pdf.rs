//! Turns a figure into PDF.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use svg2pdf::usvg::fontdb::{Database, Family, Query};
use svg2pdf::usvg::{Options, Tree};
use svg2pdf::{ConversionOptions, PageOptions};

/// Fonts that have all signs of a figure, the best first.
const FONTS: [&str; 6] = [
    "Helvetica",
    "Arial",
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Segoe UI",
];

/// Turns the text of an SVG file into a PDF file of the same size, whose text stays text.
///
/// # Errors
///
/// Fails if this machine has no font to write with.
pub fn pdf(svg: &str) -> Result<Vec<u8>> {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    with_fonts(svg, fonts)
}

fn with_fonts(svg: &str, mut fonts: Database) -> Result<Vec<u8>> {
    let is_there = |name: &&&str| {
        let families = &[Family::Name(name)];
        fonts
            .query(&Query {
                families,
                ..Query::default()
            })
            .is_some()
    };
    let known = FONTS.iter().find(is_there).map(|name| name.to_string());
    let any = || Some(fonts.faces().next()?.families.first()?.0.clone());
    let font = known.or_else(any).context(
        "PDF needs a font, and this machine has none; install one, such as DejaVu Sans, or choose --format svg",
    )?;
    fonts.set_sans_serif_family(font);
    let options = Options {
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options)?;
    let page = PageOptions { dpi: options.dpi };
    svg2pdf::to_pdf(&tree, ConversionOptions::default(), page)
        .map_err(|error| anyhow!("cannot write the figure as PDF: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_fonts_is_told_so() {
        let error = with_fonts("<svg/>", Database::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains("has none"), "{error}");
        assert!(error.contains("--format svg"), "{error}");
    }
}
