//! A figure: the title above, the caption below, and panels of equal size between them.

use anyhow::Result;
use plotters::prelude::*;

use super::panel::Panel;
use super::parts::{MARGIN, drawing, write_lines};
use super::text::{CAPTION_SIZE, TITLE_SIZE, line_height, wrap};
use crate::show::sidecar::Sidecar;
use crate::wording::counted;

/// The narrowest figure: in narrower ones, title and caption would break into too many lines.
const MIN_WIDTH: u32 = 840;

/// A figure.
pub struct Figure<'a> {
    pub(crate) title: String,
    /// Paragraphs of the caption.
    pub(crate) caption: Vec<String>,
    /// Number of panels side by side.
    pub(crate) columns: usize,
    /// Width and height of a panel, without the names beside it; a figure of few panels may make
    /// them wider.
    pub(crate) size: (u32, u32),
    /// The panels, row by row.
    pub(crate) panels: Vec<Panel<'a>>,
}

impl Figure<'_> {
    /// Renders the figure as the text of an SVG file.
    ///
    /// # Errors
    ///
    /// Fails if the plotting library cannot draw it.
    pub fn render(&self) -> Result<String> {
        let rows = self.panels.len().div_ceil(self.columns);
        let names = self.panels.iter().map(Panel::label_width).max();
        let panel_width = self.size.0 + names.unwrap_or_default();
        let width = MIN_WIDTH.max(self.columns as u32 * panel_width);
        let body_height = rows as u32 * self.size.1;
        let inner_width = width as i32 - 2 * MARGIN;
        let title = wrap(&self.title, inner_width, TITLE_SIZE);
        let caption: Vec<_> = (self.caption.iter())
            .flat_map(|line| wrap(line, inner_width, CAPTION_SIZE))
            .collect();
        let top = MARGIN + line_height(TITLE_SIZE) * title.len() as i32;
        let caption_height = line_height(CAPTION_SIZE) * caption.len() as i32;
        let height = top as u32 + body_height + (caption_height + MARGIN) as u32;

        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
            root.fill(&WHITE).map_err(drawing)?;
            let (head, rest) = root.split_vertically(top);
            let (body, foot) = rest.split_vertically(body_height);
            write_lines(&head, &title, MARGIN / 2, TITLE_SIZE)?;
            let areas = body.split_evenly((rows, self.columns));
            for (panel, area) in self.panels.iter().zip(&areas) {
                panel.draw(area)?;
            }
            write_lines(&foot, &caption, MARGIN / 2, CAPTION_SIZE)?;
            root.present().map_err(drawing)?;
        }
        Ok(svg)
    }
}

/// Describes what the run was measured with.
pub(crate) fn machine_line(sidecar: &Sidecar) -> String {
    let (machine, run) = (&sidecar.machine, &sidecar.run);
    let simulated = match &run.simulated[..] {
        [] => String::new(),
        machines => format!("Simulated: {}. Computed on ", machines.join("; ")),
    };
    format!(
        "{simulated}{}, {}{}{}. {}. {}. {}.",
        machine.processor,
        counted(machine.cores, "core"),
        match machine.threads_per_core {
            1 => String::new(),
            threads => format!(" with {threads} hardware threads each"),
        },
        if machine.hypervisor == "present" {
            ", virtual machine"
        } else {
            ""
        },
        sidecar
            .compiler
            .rustc
            .split(" (")
            .next()
            .unwrap_or_default(),
        sources(sidecar),
        run.started.split('T').next().unwrap_or_default(),
    )
}

/// Describes what measured: the commit of the harness, preceded by the program if it is another.
fn sources(sidecar: &Sidecar) -> String {
    let harness = &sidecar.harness;
    match &sidecar.program {
        Some(program) if program != harness => format!(
            "{} {}, commit {}; {}, commit {}",
            program.name,
            program.version.split(':').next().unwrap_or_default(),
            program.short(),
            harness.name,
            harness.short()
        ),
        _ => format!("Commit {}", harness.short()),
    }
}
