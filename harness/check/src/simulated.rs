//! Runs a scenario on simulated cores. The scheduler orders accesses by time, and delays cores at
//! random before them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use histories::Call;
use simulator::{Body, Core, Model, Options};

use crate::candidate::Candidate;
use crate::judge::OfKey;
use crate::scenario::Scenario;
use crate::{Worker, staff};

/// A machine with as many cores as a check may have threads.
const MACHINE: &str = "ice-lake-8375c-2s";

/// The longest delay before an access, in ns: as long as some hundred accesses.
const DELAY: f64 = 2_000.0;

/// Like [`run_scenario`](crate::run_scenario), but always to its end.
pub(crate) fn run_scenario(
    candidate: &Candidate,
    scenario: &Scenario,
    seed: u64,
) -> Result<Vec<Call<OfKey>>> {
    let options = Options {
        delay: DELAY,
        seed,
        ..Options::default()
    };
    let ended: Rc<RefCell<Vec<Worker>>> = Rc::default();
    let model = Model::named_or_read(MACHINE)?;
    let (keeper, _) = simulator::run(&model, scenario.scripts.len(), &options, || {
        let (keeper, workers) = staff(candidate, scenario)?;
        let others = Arc::new(AtomicUsize::new(scenario.once_only()));
        let scripts = scenario.scripts.iter().cloned().zip(workers);
        let body = |(script, mut worker): (_, Worker)| {
            let (ended, others) = (Rc::clone(&ended), Arc::clone(&others));
            Box::new(move |_: &Core| {
                worker.follow(&script, &others, &|| false);
                ended.borrow_mut().push(worker);
            }) as Body
        };
        Ok((keeper, scripts.map(body).collect()))
    })?;
    Ok(keeper.finish(scenario, ended.take()))
}
