//! mini-redis 0.4.1 of crates.io, a server on Tokio, with 20,000 keys.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, Program};
use crate::build::{self, sources};
use crate::failure::Failure;

/// The server of mini-redis.
pub(super) struct MiniRedis;

const KEYS: usize = 20_000;
const PORT: u16 = 36_379;

/// A package that depends on it, so that cargo fetches it.
const FETCHING: &str = "[package]\nname = \"fetching\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                        [dependencies]\nmini-redis = \"=0.4.1\"\n\n[workspace]\n";

impl Program for MiniRedis {
    fn name(&self) -> &'static str {
        "mini-redis-server"
    }

    fn features(&self) -> &'static [&'static str] {
        &["--features", "memreport"]
    }

    fn test_arguments(&self) -> &'static [&'static str] {
        // With the Tokio of today it fails in the published package too.
        &["--skip", "key_value_timeout"]
    }

    fn prepare(&self, bench: &Bench) -> Result<(), Failure> {
        let fetching = bench.package.with_file_name("fetching");
        fs::create_dir_all(fetching.join("src"))?;
        fs::write(fetching.join("Cargo.toml"), FETCHING)?;
        fs::write(fetching.join("src/lib.rs"), "")?;
        let mut vendor = build::cargo();
        vendor.args(["vendor", "--quiet", "vendored"]).current_dir(&fetching);
        bench.answer(&mut vendor)?;
        let source = fetching.join("vendored/mini-redis");
        sources::copy(&source, &bench.package)?;
        let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
        fs::write(bench.package.join("Cargo.toml"), manifest + "\n[workspace]\n")?;
        let mut init = Command::new(&bench.cargo_memreport);
        init.args(["memreport", "init", "--path"]).arg(build::root()).current_dir(&bench.package);
        bench.answer(&mut init)?;
        // The published lock file has a version that memreport's feature for the crate does not
        // take: the message of `annotate` asks for this.
        let mut update = build::cargo();
        update.args(["update", "--quiet", "bytes"]).current_dir(&bench.package);
        bench.answer(&mut update).map(drop)
    }

    fn scan(&self, program: &Path, report: &Path, bench: &Bench) -> Result<(), Failure> {
        let folder = report.with_extension("folder");
        let _ = fs::remove_dir_all(&folder);
        let mut run = Command::new(&bench.about_memory);
        run.arg("run").arg("-o").arg(&folder).arg("--").arg(program);
        run.args(["--port", &PORT.to_string()]).env("DMD", "--mode=scan");
        let mut server = Server(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let mut stream = server.connect()?;
        let mut answers = [0; 5];
        for number in 0..KEYS {
            let (key, value) = (format!("key:{number:08}"), format!("{number:0>100}"));
            // In one piece: its end would wait for the acknowledgement of its beginning.
            let request = format!(
                "*3\r\n$3\r\nset\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n",
                key.len(),
                value.len()
            );
            stream.write_all(request.as_bytes())?;
            stream.read_exact(&mut answers)?;
        }
        // It takes a snapshot then, before the server frees its heap.
        let mut kill = Command::new("kill");
        bench.answer(kill.args(["-TERM", &server.0.id().to_string()]))?;
        server.0.wait()?;
        let dumps = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
        let is_dump = |path: &PathBuf| path.to_string_lossy().contains(".dmd.json");
        let dump = dumps.filter(is_dump).min().ok_or("the server left no dump")?;
        fs::copy(dump, report.with_extension("dmd.json"))?;
        Ok(())
    }
}

/// A running server, which is ended when its value is dropped.
struct Server(Child);

impl Server {
    /// Waits until the server listens.
    fn connect(&self) -> Result<TcpStream, Failure> {
        let begin = Instant::now();
        loop {
            match TcpStream::connect(("127.0.0.1", PORT)) {
                Ok(stream) => return Ok(stream),
                Err(error) if begin.elapsed() > Duration::from_secs(10) => return Err(error.into()),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It runs until it is ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
