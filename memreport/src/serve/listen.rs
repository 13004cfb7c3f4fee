//! The thread that listens: it never waits for one client, and never runs what it does not know.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::commands::{Answer, Commands};
use super::history::History;
use super::moments::Moments;
use super::protocol::{self, Part, Request, Status};
use super::sys::{self, Ready, Wanted};
use super::work::{Job, Task, Work, text};
use crate::allocator::declaration::{heap_counters, is_declared, tracker};
use crate::process::resident;

/// How long a client may take to ask, and how long to take the next piece of its answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// How many clients may be connected; beyond, whoever has taken longest to ask goes.
const MOST_CLIENTS: usize = 64;

/// How much is waited for when nothing is to be done: a moment's look at the stop flag is all that depends on it.
const IDLE: Duration = Duration::from_secs(3600);

/// A client, from its first byte to the last of its answer.
#[derive(Debug)]
struct Client {
    id: u64,
    stream: UnixStream,
    /// Its user is ours, or root.
    is_welcome: bool,
    since: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    /// What it has said so far of its request.
    Asking(Vec<u8>),
    /// Somebody works at it.
    Waiting,
    /// So much of the answer was taken.
    Answered(Arc<Vec<u8>>, usize),
}

/// All that the thread has.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: UnixListener,
    pub(super) name: String,
    pub(super) patience: Duration,
    pub(super) commands: Commands,
    pub(super) history: Option<Arc<History>>,
    pub(super) moments: Moments,
    pub(super) work: Work,
    /// Bytes come through it when a thread is done, and its end when the server is to stop.
    pub(super) wake: UnixStream,
    clients: Vec<Client>,
    next: u64,
}

/// What a listener is made of.
pub(super) struct Parts {
    pub(super) socket: UnixListener,
    pub(super) name: String,
    pub(super) patience: Duration,
    pub(super) commands: Commands,
    pub(super) moments: Moments,
    pub(super) wake: (UnixStream, UnixStream),
}

impl Listener {
    pub(super) fn new(parts: Parts) -> Self {
        let history = parts.moments.history.as_ref().map(|(_, history)| Arc::clone(history));
        Listener {
            socket: parts.socket,
            name: parts.name,
            patience: parts.patience,
            work: Work::new(parts.commands.clone(), parts.wake.1),
            commands: parts.commands,
            history,
            moments: parts.moments,
            wake: parts.wake.0,
            clients: Vec::new(),
            next: 0,
        }
    }

    /// Serves until the other end of `wake` is shut.
    pub(super) fn serve(mut self) {
        sys::take_no_signals();
        loop {
            let now = Instant::now();
            for task in self.moments.due(now) {
                self.work.add(Job { task, clients: Vec::new(), patience: self.patience });
            }
            for (clients, answer) in self.work.go_on() {
                self.answer(&clients, &answer);
            }
            self.clients.retain(|client| match client.state {
                State::Waiting => true,
                _ => client.since + CLIENT_PATIENCE > now,
            });
            let (wanted, patience) = self.wanted(now);
            let ready = sys::wait(&wanted, patience);
            if !self.hear(&ready) {
                sys::closed();
                return;
            }
        }
    }

    /// First the socket, then the wake-up pipe, then the clients, then the signals' pipe if there is one.
    fn wanted(&self, now: Instant) -> (Vec<Wanted>, Duration) {
        let reading = |descriptor| Wanted { descriptor, reading: true, writing: false };
        let mut wanted = vec![reading(self.socket.as_raw_fd()), reading(self.wake.as_raw_fd())];
        wanted.extend(self.clients.iter().map(|client| Wanted {
            descriptor: client.stream.as_raw_fd(),
            reading: matches!(client.state, State::Asking(_)),
            writing: matches!(client.state, State::Answered(..)),
        }));
        wanted.extend(self.moments.descriptor().map(reading));
        let clients = self
            .clients
            .iter()
            .filter(|client| !matches!(client.state, State::Waiting))
            .map(|client| client.since + CLIENT_PATIENCE);
        let next = clients.chain(self.work.deadline()).chain(self.moments.deadline()).min();
        (wanted, next.map_or(IDLE, |next| next.saturating_duration_since(now)))
    }

    /// Does what can be done without waiting. `false` when the server is to stop.
    fn hear(&mut self, ready: &[Ready]) -> bool {
        let [socket, wake, rest @ ..] = ready else { return false };
        if wake.gone {
            return false;
        }
        if wake.readable {
            // The list of what is done says more than the bytes do.
            let _ = self.wake.read(&mut [0; 64]);
        }
        let (of_clients, of_signals) = rest.split_at(self.clients.len().min(rest.len()));
        let clients = std::mem::take(&mut self.clients);
        for (client, ready) in clients.into_iter().zip(of_clients) {
            if let Some(client) = self.go_on_with(client, *ready) {
                self.clients.push(client);
            }
        }
        if of_signals.first().is_some_and(|ready| ready.readable) {
            if let Some(task) = self.moments.signal() {
                self.work.add(Job { task, clients: Vec::new(), patience: self.patience });
            }
        }
        if socket.readable {
            self.accept();
        }
        true
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.socket.accept() {
            let own = sys::user();
            let is_welcome = sys::peer(&stream).is_ok_and(|peer| peer.uid == own || peer.uid == 0);
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.next += 1;
            let state = State::Asking(Vec::new());
            let client = Client { id: self.next, stream, is_welcome, since: Instant::now(), state };
            if self.clients.len() >= MOST_CLIENTS {
                self.make_room();
            }
            self.clients.push(client);
        }
    }

    /// Whoever has taken longest to ask, or to take its answer, goes; those who wait for us stay if they can.
    fn make_room(&mut self) {
        let slowest = self
            .clients
            .iter()
            .enumerate()
            .min_by_key(|(_, client)| (matches!(client.state, State::Waiting), client.since));
        if let Some((place, _)) = slowest {
            self.clients.remove(place);
        }
    }

    /// The client, if it is to stay.
    fn go_on_with(&mut self, mut client: Client, ready: Ready) -> Option<Client> {
        match &mut client.state {
            State::Asking(said) if ready.readable => {
                let mut piece = [0; 1024];
                match client.stream.read(&mut piece) {
                    Ok(0) => return None,
                    Ok(count) => said.extend_from_slice(&piece[..count]),
                    Err(error) if is_passing(&error) => return Some(client),
                    Err(_) => return None,
                }
                let end = said.iter().position(|byte| *byte == b'\n');
                if let Some(end) = end {
                    let line = said[..end].to_vec();
                    self.ask(&mut client, &line);
                } else if said.len() > protocol::LONGEST_REQUEST {
                    let longest = protocol::LONGEST_REQUEST;
                    let refusal = Err(format!("a request has at most {longest} bytes"));
                    client.state = State::Answered(Arc::new(bytes(&refusal)), 0);
                }
                Some(client)
            }
            State::Answered(answer, taken) if ready.writable => {
                match client.stream.write(&answer[*taken..]) {
                    Ok(count) => {
                        *taken += count;
                        client.since = Instant::now();
                        (*taken < answer.len()).then_some(client)
                    }
                    Err(error) if is_passing(&error) => Some(client),
                    Err(_) => None,
                }
            }
            // One that has hung up waits for nothing.
            _ => (!ready.gone).then_some(client),
        }
    }

    /// Answers at once what needs no other code than ours, and has the rest worked at.
    fn ask(&mut self, client: &mut Client, line: &[u8]) {
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
                    let patience = patience(&request).unwrap_or(self.patience);
                    let clients = vec![client.id];
                    return self.work.add(Job { task: Task::Answer(request), clients, patience });
                }
            },
        };
        client.since = Instant::now();
        client.state = State::Answered(Arc::new(bytes(&answer)), 0);
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
            saved: self.moments.said(),
        };
        let status = serde_json::to_string(&status).map_err(|error| error.to_string())?;
        Ok(vec![text("status", status)])
    }

    fn answer(&mut self, to: &[u64], answer: &Answer) {
        if to.is_empty() {
            return;
        }
        let answer = Arc::new(bytes(answer));
        for client in self.clients.iter_mut().filter(|client| to.contains(&client.id)) {
            client.since = Instant::now();
            client.state = State::Answered(Arc::clone(&answer), 0);
        }
    }
}

/// What the allocator tracks, or why it does not.
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

/// How long the client wants to wait.
fn patience(request: &Request) -> Option<Duration> {
    let seconds: f64 = request.get("patience")?.parse().ok()?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, 3600.0)).ok()
}

/// An answer as it goes over the socket.
fn bytes(answer: &Answer) -> Vec<u8> {
    let mut bytes = protocol::header(answer).into_bytes();
    for Part { bytes: part, .. } in answer.iter().flatten() {
        bytes.extend_from_slice(part);
    }
    bytes
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
