//! mini-redis of crates.io, a store in memory, and the load that redis-benchmark puts on it.

mod fill;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::published::Published;
use crate::failure::Failure;

/// The published server.
pub(super) const MINI_REDIS: Published = Published {
    package: "mini-redis",
    version: "0.4.1",
    program: "mini-redis-server",
    main: "src/bin/server.rs",
    begin: Some("pub async fn main() -> mini_redis::Result<()> {\n"),
    features: &[],
};

/// The requests of each kind in a round.
pub(super) const REQUESTS: u32 = 200_000;

/// The number of keys, and the bytes of a value.
const KEYS: u32 = 1_000_000;
const VALUE: u32 = 256;

/// The connections that are open at once, each of which waits for its answer.
const CLIENTS: u32 = 16;

/// A server that is killed when it is dropped.
pub(super) struct Server {
    child: Child,
    port: u16,
}

/// The answers in a round of the client.
pub(super) struct Load {
    pub(super) set: Answers,
    pub(super) get: Answers,
    /// The server's processor time, in ticks.
    pub(super) processor: f64,
}

pub(super) struct Answers {
    pub(super) per_second: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(super) slow: f64,
}

impl Server {
    pub(super) fn start(program: &Path, (name, value): (&str, &str)) -> Result<Self, Failure> {
        // A port that is free now: the server wants a number.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new(program);
        command.env_remove("DMD").args(["--port", &port.to_string()]);
        if !value.is_empty() {
            command.env(name, value);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let server = Self { child, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(format!("{} does not listen", program.display()).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Begins to track every block, as a user would.
    pub(super) fn track(&self, bench: &Bench) -> Result<(), Failure> {
        let mut track = bench.about_memory();
        let ended = track.args(["track", &self.pid()]).output()?;
        if !ended.status.success() {
            return Err(String::from_utf8_lossy(&ended.stderr).into_owned().into());
        }
        Ok(())
    }

    /// Returns the server's resident memory, in KiB.
    pub(super) fn resident(&self) -> Result<f64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("no VmRSS")?.parse()?)
    }

    /// Returns the server's processor time, in ticks.
    fn processor(&self) -> Result<f64, Failure> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        let (_, after_name) = stat.rsplit_once(')').ok_or("no name in `stat`")?;
        let mut words = after_name.split_whitespace().skip(11);
        let mut ticks = || words.next().and_then(|word| word.parse::<f64>().ok());
        let (user, system) = (ticks().ok_or("no user time")?, ticks().ok_or("no system time")?);
        Ok(user + system)
    }

    /// Puts one round of load on the server.
    pub(super) fn load(&mut self) -> Result<Load, Failure> {
        let before = self.processor()?;
        let mut client = Command::new("redis-benchmark");
        client.args(["-h", "127.0.0.1", "--csv", "-t", "set,get"]);
        for (option, number) in [
            ("-p", self.port.into()),
            ("-n", REQUESTS),
            ("-r", KEYS),
            ("-d", VALUE),
            ("-c", CLIENTS),
        ] {
            client.args([option, &number.to_string()]);
        }
        let output = client.stderr(Stdio::null()).output()?;
        if !output.status.success() || self.child.try_wait()?.is_some() {
            return Err("the server or its client failed".into());
        }
        let text = String::from_utf8(output.stdout)?;
        let of = |test: &str| Answers::of(&text, test);
        Ok(Load { set: of("SET")?, get: of("GET")?, processor: self.processor()? - before })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answers {
    /// Reads the line of a test: its name, requests per second, mean, least, 50th, 95th and 99th
    /// percentile, and greatest latency.
    fn of(text: &str, test: &str) -> Result<Self, Failure> {
        let line = text.lines().find(|line| line.starts_with(&format!("\"{test}\"")));
        let line = line.ok_or_else(|| format!("redis-benchmark has no line for {test}: {text}"))?;
        let numbers: Vec<f64> =
            line.split(',').filter_map(|word| word.trim_matches('"').parse().ok()).collect();
        match numbers[..] {
            [per_second, _, _, _, _, slow, _] => Ok(Self { per_second, slow }),
            _ => Err(format!("redis-benchmark printed {line}").into()),
        }
    }
}
