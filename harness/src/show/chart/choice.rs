//! Chooses what of a figure is drawn, and on which scale.

use anyhow::{Result, bail, ensure};

use super::figure::Figure;
use super::panel::Panel;
use super::scale::Scale;

impl Figure {
    /// Keeps the panels that are named, by number from 1 or by label, in their order.
    ///
    /// # Errors
    ///
    /// Fails if there is no such panel; the message names those that there are.
    pub fn keep_panels(&mut self, names: &[String]) -> Result<()> {
        let is_named = |name: &str, index: usize, panel: &Panel| {
            panel.label == name || name.parse() == Ok(index + 1)
        };
        let panels = || self.panels.iter().enumerate();
        for name in names {
            if !panels().any(|(index, panel)| is_named(name, index, panel)) {
                let known: Vec<_> = panels()
                    .map(|(index, panel)| format!("{} ({})", index + 1, panel.label))
                    .collect();
                bail!(
                    "--panels: there is no panel {name}; choose of {}",
                    known.join(", ")
                );
            }
        }
        let kept = panels()
            .filter(|(index, panel)| names.iter().any(|name| is_named(name, *index, panel)));
        self.panels = kept.map(|(_, panel)| panel.clone()).collect();
        Ok(())
    }

    /// Keeps these subjects, and the panels that show one of them.
    ///
    /// # Errors
    ///
    /// Fails if there is no such subject; the message names those that there are.
    pub fn keep_subjects(&mut self, names: &[String]) -> Result<()> {
        let known = self.subjects();
        for name in names {
            ensure!(
                known.contains(&&**name),
                "--subjects: {name} is not in this figure; choose of {}",
                known.join(", ")
            );
        }
        for panel in &mut self.panels {
            panel.lines.retain(|line| names.contains(&line.subject));
        }
        self.panels
            .retain(|panel| panel.lines.iter().any(|line| !line.points.is_empty()));
        Ok(())
    }

    /// Lays out what was measured on linear axes from zero, or on logarithmic ones.
    ///
    /// # Errors
    ///
    /// Fails if there is a zero, which a logarithmic axis does not have.
    pub fn scale(&mut self, is_logarithmic: bool) -> Result<()> {
        for panel in &mut self.panels {
            let zero = panel
                .lines
                .iter()
                .find(|line| line.points.iter().any(|(_, of)| of.median <= 0.0));
            if let Some(line) = zero.filter(|_| is_logarithmic) {
                bail!(
                    "--log: {} is at 0 in \"{}\", and a logarithmic axis has no zero; leave out --log, or such panels with --panels",
                    line.subject,
                    panel.title
                );
            }
            panel.y.scale = if is_logarithmic {
                Scale::Logarithmic
            } else {
                Scale::FromZero
            };
        }
        Ok(())
    }
}
