//! What studies that are not yet a [`Study`](crate::study::Study) use.

pub mod order;

pub(crate) use crate::crew::{Crew, Member};
pub use crate::ending::{Ending, stop_on_ctrl_c};
