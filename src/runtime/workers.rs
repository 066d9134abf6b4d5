//! The threads that compile. They are started when there is work, and end when there has been none
//! for a second: starting one takes longer than a thousand calls of a small function, and the
//! system may run it on the core of the caller first. All recorded functions of the process share
//! them.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

type Work = Box<dyn FnOnce() + Send>;

/// The work to do, and the number of threads that do it.
struct Workers {
    queue: VecDeque<Work>,
    /// The number of threads, and of those that wait for work.
    threads: usize,
    waiting: usize,
}

/// The time after which a thread without work ends.
const WAIT: Duration = Duration::from_secs(1);
/// The largest number of threads.
const MAX_THREADS: usize = 4;

static WORKERS: Mutex<Workers> =
    Mutex::new(Workers { queue: VecDeque::new(), threads: 0, waiting: 0 });
static CHANGED: Condvar = Condvar::new();

/// Runs `work` on a thread of its own, or after that of others.
///
/// # Errors
///
/// If no thread could be started.
pub(super) fn run(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut workers = lock();
    // Those that wait may have been woken for work that is in the queue.
    if workers.waiting <= workers.queue.len() && workers.threads < max_threads() {
        let started = thread::Builder::new().name("phigrad-compile".into()).spawn(serve);
        match started {
            Ok(_) => workers.threads += 1,
            Err(error) if workers.threads == 0 => return Err(error),
            Err(_) => {}
        }
    }
    workers.queue.push_back(Box::new(work));
    drop(workers);
    CHANGED.notify_one();
    Ok(())
}

/// Does work until there is none for a while.
fn serve() {
    let mut workers = lock();
    loop {
        while let Some(work) = workers.queue.pop_front() {
            drop(workers);
            // A panic is reported where the work waits for its result; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(work));
            workers = lock();
        }
        workers.waiting += 1;
        let waited = CHANGED.wait_timeout(workers, WAIT);
        workers = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(workers, _)| workers);
        workers.waiting -= 1;
        if workers.queue.is_empty() {
            workers.threads -= 1;
            return;
        }
    }
}

/// The largest number of threads: one for each core, up to a limit.
fn max_threads() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
}

fn lock() -> MutexGuard<'static, Workers> {
    // No user code runs under the lock.
    WORKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn all_work_is_done_also_after_a_panic() {
        let (sender, receiver) = channel();
        for i in 0..100 {
            let sender = sender.clone();
            run(move || {
                sender.send(i).unwrap();
                assert!(i % 10 > 0, "on purpose");
            })
            .unwrap();
        }
        drop(sender);
        let mut done: Vec<i32> = receiver.iter().collect();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
        assert!(lock().threads <= max_threads());
    }
}
