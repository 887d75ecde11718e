//! A disk in memory whose power can fail: of what was not synced, some sectors stay and others do
//! not.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use rand::RngExt;
use rand::rngs::StdRng;

use log_store::store::disk::Disk;
use log_store::store::log;

/// The unit that a disk writes as a whole.
const SECTOR: usize = 512;

/// A disk. Its clones share it, so a test still has it when the store is gone.
#[derive(Clone)]
pub(crate) struct SimulatedDisk(Rc<RefCell<State>>);

struct State {
    /// The contents as read.
    bytes: Vec<u8>,
    /// The contents that survive a power failure in any case.
    synced: Vec<u8>,
    /// Everything that happened since then.
    pending: Vec<Pending>,
    /// How many more times it can be written, truncated or synced before the power fails.
    left: usize,
}

enum Pending {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl SimulatedDisk {
    /// Makes a disk with an empty log.
    pub(crate) fn new() -> SimulatedDisk {
        SimulatedDisk::of(log::first_page())
    }

    pub(crate) fn of(bytes: Vec<u8>) -> SimulatedDisk {
        SimulatedDisk(Rc::new(RefCell::new(State {
            synced: bytes.clone(),
            bytes,
            pending: Vec::new(),
            left: usize::MAX,
        })))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.borrow().bytes.clone()
    }

    /// Makes the power fail after this many more calls that write, truncate or sync.
    pub(crate) fn fail_after(&self, calls: usize) {
        self.0.borrow_mut().left = calls;
    }

    /// Restores the power; chance decides what the disk has kept.
    pub(crate) fn restart(&self, rng: &mut StdRng) {
        // In two cases of three all of it or nothing: chosen one by one, sectors would seldom all
        // be lost.
        let stays = [0.0, 0.5, 1.0][rng.random_range(0..3)];
        let truncated = rng.random_bool(stays);
        self.restart_with(truncated, |_| rng.random_bool(stays));
    }

    /// Restores the power; the arguments decide which truncations and sectors stay, of those that
    /// were not synced. A sector is identified by where it begins.
    pub(crate) fn restart_with(&self, truncated: bool, mut stays: impl FnMut(usize) -> bool) {
        let state = &mut *self.0.borrow_mut();
        let mut bytes = state.synced.clone();
        for pending in state.pending.drain(..) {
            match pending {
                Pending::Truncate(length) if truncated => bytes.truncate(length),
                Pending::Truncate(_) => {}
                Pending::Write(offset, written) => {
                    for (sector, part) in written.chunks(SECTOR).enumerate() {
                        let start = offset + sector * SECTOR;
                        if stays(start) {
                            put(&mut bytes, start, part);
                        }
                    }
                }
            }
        }
        state.synced = bytes.clone();
        state.bytes = bytes;
        state.left = usize::MAX;
    }
}

/// Writes at `offset`, with zeros where there was nothing.
fn put(bytes: &mut Vec<u8>, offset: usize, part: &[u8]) {
    let end = offset + part.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(part);
}

impl State {
    fn call(&mut self) -> io::Result<()> {
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| io::Error::other("no power"))?;
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.borrow().bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let state = self.0.borrow();
        let read = state.bytes.get(offset as usize..).unwrap_or_default();
        let read = read
            .get(..bytes.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(read);
        Ok(())
    }

    /// The write during which the power fails may survive in part, like those before.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        put(&mut state.bytes, offset as usize, bytes);
        let write = Pending::Write(offset as usize, bytes.to_vec());
        state.pending.push(write);
        state.call()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        state.bytes.truncate(length as usize);
        state.pending.push(Pending::Truncate(length as usize));
        state.call()
    }

    fn sync(&mut self) -> io::Result<()> {
        let state = &mut *self.0.borrow_mut();
        state.call()?;
        state.synced = state.bytes.clone();
        state.pending.clear();
        Ok(())
    }
}
