//! Runs the thread that listens. It never waits for a single client, and never runs foreign code.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::LONGEST_TIMEOUT;
use super::autosave::Autosave;
use super::commands::{Answer, Commands};
use super::history::History;
use super::protocol::{self, Request, Status};
use super::reply::{Outcome, Reply, outcome};
use super::sys::{self, ClosedInChildren, Interest, Ready};
use super::work::{Job, Task, Work, text};
use crate::allocator::declaration::{heap_counters, is_declared, mark_own_thread, tracker};
use crate::process::resident;
use crate::snapshot::descriptor::out_of_the_way;

/// The time in which a client must send its request, and then accept each piece of the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most connected clients. Beyond, the client that has been slowest is disconnected.
const MAX_CLIENTS: usize = 64;

/// The time to wait without a deadline. Nothing but a spurious wake-up depends on it.
const IDLE: Duration = Duration::from_secs(3600);

/// A client, from the first byte of its request to the last of its answer.
#[derive(Debug)]
struct Client {
    id: u64,
    stream: UnixStream,
    /// True if the client's user is this program's, or root.
    is_welcome: bool,
    since: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The bytes of the request so far.
    Reading(Vec<u8>),
    /// A thread works on the answer.
    Waiting,
    /// The answer, and the number of bytes sent.
    Answered(Arc<Reply>, u64),
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Listener {
    /// Dropped before the socket, whose number another thread may then get.
    _closed_in_children: ClosedInChildren,
    pub(super) socket: UnixListener,
    pub(super) name: String,
    pub(super) timeout: Duration,
    pub(super) commands: Commands,
    pub(super) history: Option<Arc<History>>,
    pub(super) autosave: Autosave,
    pub(super) work: Work,
    /// Receives a byte when a worker thread is done. Its end is shut when the server stops.
    pub(super) wake: UnixStream,
    clients: Vec<Client>,
    next: u64,
    /// A descriptor to accept a client with when the process has no other.
    reserved: Option<File>,
    /// The earliest time to accept again, after even that failed.
    accept_after: Option<Instant>,
}

/// The values that a listener is built from.
pub(super) struct Parts {
    pub(super) closed_in_children: ClosedInChildren,
    pub(super) socket: UnixListener,
    pub(super) name: String,
    pub(super) timeout: Duration,
    pub(super) commands: Commands,
    pub(super) autosave: Autosave,
    pub(super) wake: (UnixStream, UnixStream),
}

impl Listener {
    pub(super) fn new(parts: Parts) -> Self {
        let history = parts.autosave.history.as_ref().map(|(_, history)| Arc::clone(history));
        Listener {
            _closed_in_children: parts.closed_in_children,
            socket: parts.socket,
            name: parts.name,
            timeout: parts.timeout,
            work: Work::new(parts.commands.clone(), parts.wake.1),
            commands: parts.commands,
            history,
            autosave: parts.autosave,
            wake: parts.wake.0,
            clients: Vec::new(),
            next: 0,
            reserved: reserve(),
            accept_after: None,
        }
    }

    /// Serves until the other end of `wake` is shut.
    pub(super) fn serve(mut self) {
        mark_own_thread();
        sys::block_signals();
        loop {
            let now = Instant::now();
            for task in self.autosave.due_tasks(now) {
                self.work.add(Job::own(task, self.timeout));
            }
            for (clients, answer) in self.work.advance() {
                self.answer(&clients, answer);
            }
            if self.work.take_begun_event() {
                self.autosave.begin_cooldown(now);
            }
            self.clients.retain(|client| match client.state {
                State::Waiting => true,
                _ => client.since + CLIENT_TIMEOUT > now,
            });
            let (interests, timeout) = self.interests(now);
            let ready = sys::wait(&interests, timeout);
            if !self.handle_ready(&ready) {
                return;
            }
        }
    }

    /// Returns the descriptors to poll: the socket, the wake-up pipe, the clients, the signal pipe
    /// if there is one. Also returns the time until the next deadline.
    fn interests(&self, now: Instant) -> (Vec<Interest>, Duration) {
        let reading = |descriptor| Interest { descriptor, reading: true, writing: false };
        let accepts = self.accept_after.is_none_or(|time| time <= now);
        let socket = Interest { reading: accepts, ..reading(self.socket.as_raw_fd()) };
        let mut interests = vec![socket, reading(self.wake.as_raw_fd())];
        interests.extend(self.clients.iter().map(|client| Interest {
            descriptor: client.stream.as_raw_fd(),
            reading: matches!(client.state, State::Reading(_)),
            writing: matches!(client.state, State::Answered(..)),
        }));
        interests.extend(self.autosave.descriptor().map(reading));
        let clients = self
            .clients
            .iter()
            .filter(|client| !matches!(client.state, State::Waiting))
            .map(|client| client.since + CLIENT_TIMEOUT);
        let others = [self.work.deadline(), self.autosave.deadline(), self.accept_after];
        let next = clients.chain(others.into_iter().flatten()).min();
        (interests, next.map_or(IDLE, |next| next.saturating_duration_since(now)))
    }

    /// Handles the ready descriptors without waiting. Returns false if the server must stop.
    fn handle_ready(&mut self, ready: &[Ready]) -> bool {
        let [socket, wake, rest @ ..] = ready else { return false };
        if wake.gone {
            return false;
        }
        if wake.readable {
            // The bytes only wake the thread. The list of finished jobs has the details.
            let _ = self.wake.read(&mut [0; 64]);
        }
        let (of_clients, of_signals) = rest.split_at(self.clients.len().min(rest.len()));
        let clients = std::mem::take(&mut self.clients);
        for (client, ready) in clients.into_iter().zip(of_clients) {
            if let Some(client) = self.advance_client(client, *ready) {
                self.clients.push(client);
            }
        }
        if of_signals.first().is_some_and(|ready| ready.readable) {
            if let Some(task) = self.autosave.signal() {
                self.work.add(Job::own(task, self.timeout));
            }
        }
        if socket.readable {
            self.accept_all();
        }
        true
    }

    /// Accepts the clients that wait. Refuses them if the process has no descriptors for them.
    fn accept_all(&mut self) {
        self.accept_after = None;
        // The rest of a long queue has its turn after the clients that are connected.
        for _ in 0..MAX_CLIENTS {
            match self.socket.accept() {
                Ok((stream, _)) => self.accept(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) if self.refuse() => {}
                Err(_) => {
                    // The client stays in the queue, so polling the socket would not wait.
                    self.accept_after = Some(Instant::now() + sys::BACK_OFF);
                    return;
                }
            }
        }
    }

    fn accept(&mut self, stream: UnixStream) {
        let own = sys::user();
        let is_welcome = sys::peer(&stream).is_ok_and(|peer| peer.uid == own || peer.uid == 0);
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        self.next += 1;
        let state = State::Reading(Vec::new());
        let client = Client { id: self.next, stream, is_welcome, since: Instant::now(), state };
        if self.clients.len() >= MAX_CLIENTS {
            self.evict_slowest();
        }
        self.clients.push(client);
    }

    /// Uses the reserved descriptor to accept a client and to disconnect it. Returns whether that
    /// was possible.
    fn refuse(&mut self) -> bool {
        drop(self.reserved.take());
        let is_refused = self.socket.accept().is_ok();
        // Another thread of the program may have taken the descriptor meanwhile.
        self.reserved = reserve();
        is_refused && self.reserved.is_some()
    }

    /// Disconnects the client that has been slowest to send or receive. Waiting clients go last.
    fn evict_slowest(&mut self) {
        let slowest = self
            .clients
            .iter()
            .enumerate()
            .min_by_key(|(_, client)| (matches!(client.state, State::Waiting), client.since));
        if let Some((place, _)) = slowest {
            self.clients.remove(place);
        }
    }

    /// Continues with a client. Returns it unless the connection is finished.
    fn advance_client(&mut self, mut client: Client, ready: Ready) -> Option<Client> {
        match &mut client.state {
            State::Reading(received) if ready.readable => {
                let mut piece = [0; 1024];
                match client.stream.read(&mut piece) {
                    Ok(0) => return None,
                    Ok(count) => received.extend_from_slice(&piece[..count]),
                    Err(error) if is_transient(&error) => return Some(client),
                    Err(_) => return None,
                }
                let end = received.iter().position(|byte| *byte == b'\n');
                if let Some(end) = end {
                    let line = received[..end].to_vec();
                    self.handle_request(&mut client, &line);
                } else if received.len() > protocol::LONGEST_REQUEST {
                    let longest = protocol::LONGEST_REQUEST;
                    let refusal = Err(format!("a request has at most {longest} bytes"));
                    client.state = State::Answered(Arc::new(Reply::new(refusal)), 0);
                }
                Some(client)
            }
            State::Answered(answer, taken) if ready.writable => {
                match answer.write_from(*taken, &mut client.stream) {
                    Ok(count) => {
                        *taken += count as u64;
                        client.since = Instant::now();
                        (*taken < answer.len()).then_some(client)
                    }
                    Err(error) if is_transient(&error) => Some(client),
                    Err(_) => None,
                }
            }
            // A client that has hung up is dropped.
            _ => (!ready.gone).then_some(client),
        }
    }

    /// Answers at once if only code of this crate is needed. Otherwise queues a job.
    fn handle_request(&mut self, client: &mut Client, line: &[u8]) {
        let answer = match Request::parse(line) {
            _ if !client.is_welcome => Err("refused: this program is another user's".to_owned()),
            Err(message) => Err(message),
            Ok(request) => match &*request.command {
                "ping" => Ok(Vec::new()),
                "status" => self.status(),
                "history" => {
                    Ok(self.history.as_ref().map_or(Vec::new(), |history| history.parts()))
                }
                _ => {
                    client.state = State::Waiting;
                    let timeout = requested_timeout(&request).unwrap_or(self.timeout);
                    let task = Task::Answer(request);
                    return self.work.add(Job::for_client(task, client.id, timeout));
                }
            },
        };
        client.since = Instant::now();
        client.state = State::Answered(Arc::new(Reply::new(outcome(answer))), 0);
    }

    fn status(&self) -> Answer {
        let counters = heap_counters();
        let status = Status {
            protocol: protocol::VERSION,
            pid: std::process::id(),
            name: self.name.clone(),
            commands: self.commands.list(),
            tracking: tracking(),
            heap_allocated: counters.map(|counters| counters.live_bytes()),
            heap_blocks: counters.map(|counters| counters.live_blocks()),
            resident: resident(),
            saved: self.autosave.results(),
        };
        let status = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        Ok(vec![text("status", status)])
    }

    fn answer(&mut self, to: &[u64], outcome: Outcome) {
        if to.is_empty() {
            return;
        }
        let answer = Arc::new(Reply::new(outcome));
        for client in self.clients.iter_mut().filter(|client| to.contains(&client.id)) {
            client.since = Instant::now();
            client.state = State::Answered(Arc::clone(&answer), 0);
        }
    }
}

/// Opens a file for its descriptor alone.
fn reserve() -> Option<File> {
    Some(out_of_the_way(File::open("/dev/null").ok()?.into()).into())
}

/// Describes the allocator's tracking, or the reason why it does not track.
fn tracking() -> String {
    match tracker() {
        Some(tracker) => tracker.state(),
        None if is_declared() => {
            "no: the program's allocator counts, but does not track; declare dmd::global_allocator!()"
                .to_owned()
        }
        None => "no: the program declares no allocator of ours; declare dmd::global_allocator!()"
            .to_owned(),
    }
}

/// Returns the timeout that the client requests: `timeout`, or `patience`, its old name.
fn requested_timeout(request: &Request) -> Option<Duration> {
    let seconds: f64 = request.get("timeout").or(request.get("patience"))?.parse().ok()?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, LONGEST_TIMEOUT.as_secs_f64())).ok()
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests;
