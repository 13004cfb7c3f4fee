//! Servers with S3's interface, which are stopped and started again: s3s-fs, a process that is
//! killed and keeps its files, or else moto, whose listener is stopped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::store::Running;
use crate::failure::Failure;
use crate::on_path;

const MOTO: &str = include_str!("store/server.py");

/// A server with the bucket `fleet`.
pub(super) struct Server {
    port: u16,
    kind: Kind,
}

enum Kind {
    /// A process with its files in a folder.
    Process { program: PathBuf, folder: PathBuf, running: Option<Running> },
    /// A process of Python that obeys lines.
    Moto { _running: Running, commands: ChildStdin, answers: BufReader<ChildStdout> },
}

impl Server {
    /// Returns whether one of the servers is installed, or else prints that it is not.
    pub(super) fn can_run(bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
        if s3s(bench).is_some() {
            return Ok(true);
        }
        writeln!(
            out,
            "clients fleet store: not run: a store whose process is killed (cargo install s3s-fs \
             --features binary; --s3s-fs names the program); moto's listener is stopped instead"
        )?;
        for module in [["moto.server", "'moto[server]'"], ["boto3", "boto3"]] {
            if !bench.has_module("store", module, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts s3s-fs if it is installed, or else moto.
    pub(super) fn start(bench: &Bench) -> Result<Self, Failure> {
        let Some(program) = s3s(bench) else { return Server::start_moto(bench) };
        let folder = bench.folder.join("s3");
        fs::create_dir_all(folder.join("fleet"))?;
        let port = free_port()?;
        let mut server = Server { port, kind: Kind::Process { program, folder, running: None } };
        server.start_again()?;
        Ok(server)
    }

    /// Starts moto.
    pub(super) fn start_moto(bench: &Bench) -> Result<Self, Failure> {
        let port = free_port()?;
        let mut command = Command::new(&bench.python);
        command.args(["-c", MOTO, &port.to_string()]).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let commands = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let kind = Kind::Moto { _running: Running(child), commands, answers };
        let mut server = Server { port, kind };
        server.answer()?;
        Ok(server)
    }

    /// Kills the process, or has moto close its listener.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        if let Kind::Process { running, .. } = &mut self.kind {
            *running = None;
            return Ok(());
        }
        self.obey("stop")
    }

    /// Starts it again, with its files.
    pub(super) fn start_again(&mut self) -> Result<(), Failure> {
        let port = self.port;
        let Kind::Process { program, folder, running } = &mut self.kind else {
            return self.obey("start");
        };
        let mut command = Command::new(program);
        command.args(["--access-key", "testing", "--secret-key", "testing"]);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]).arg(folder);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        *running = Some(Running(command.spawn()?));
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begin.elapsed() > Duration::from_secs(30) {
                return Err("the store does not start".into());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Returns the words for a stop.
    pub(super) fn stop_is(&self) -> &'static str {
        match self.kind {
            Kind::Process { .. } => "the process of the store (s3s-fs) was killed",
            Kind::Moto { .. } => "the listener of the store (moto) was stopped",
        }
    }

    /// Sets the variables by which a program finds the store.
    pub(super) fn set_variables(&self, command: &mut Command) {
        let address = format!("http://127.0.0.1:{}", self.port);
        command.env("AWS_ENDPOINT", address).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "testing").env("AWS_SECRET_ACCESS_KEY", "testing");
        command.env("AWS_REGION", "us-east-1").env_remove("AWS_SESSION_TOKEN");
    }

    /// Has moto put the files of a folder into the bucket, below `data`.
    pub(super) fn load(&mut self, folder: &Path) -> Result<(), Failure> {
        self.obey(&format!("load {}", folder.display()))
    }

    fn obey(&mut self, line: &str) -> Result<(), Failure> {
        if let Kind::Moto { commands, .. } = &mut self.kind {
            writeln!(commands, "{line}")?;
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<(), Failure> {
        let Kind::Moto { answers, .. } = &mut self.kind else { return Ok(()) };
        let mut line = String::new();
        if answers.read_line(&mut line)? == 0 {
            return Err("the store has ended".into());
        }
        Ok(())
    }
}

/// Returns the program s3s-fs, if it is named or installed.
fn s3s(bench: &Bench) -> Option<PathBuf> {
    bench.s3s.clone().or_else(|| on_path::find(&["s3s-fs"], "none").ok())
}

/// Returns a port that nobody listens on.
pub(super) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
