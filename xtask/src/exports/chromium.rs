//! A Chromium of our own, driven over `WebDriver`: started on an empty profile, offline, ended with this value.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;

/// The key of an element in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running Chromium.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: Option<String>,
    profile: PathBuf,
}

impl Browser {
    /// Starts one that keeps all it writes below `folder`.
    pub(crate) fn start(
        chromium: &Path,
        chromedriver: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let port = free_port()?;
        let driver = Command::new(chromedriver)
            .args([&format!("--port={port}"), "--log-level=SEVERE"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let profile = folder.join("chromium");
        let mut browser = Browser { driver, port, session: None, profile };
        browser.wait_for_driver()?;
        let user_data = format!("--user-data-dir={}", browser.profile.display());
        let wish = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": {
            "binary": chromium,
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--window-size=1400,1000",
                // A viewer that needs the network would be no viewer for everybody.
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                user_data,
            ],
        } } } });
        let session = request(port, "POST", "/session", Some(&wish))?;
        let id = session["sessionId"].as_str().ok_or("chromedriver began no session")?;
        browser.session = Some(id.to_owned());
        Ok(browser)
    }

    fn wait_for_driver(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.driver.try_wait()? {
                return Err(format!("chromedriver ended at its start: {status}").into());
            }
            if request(self.port, "GET", "/status", None).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(50));
        }
        Err("chromedriver does not answer".into())
    }

    fn call(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let session = self.session.as_deref().unwrap_or_default();
        request(self.port, "POST", &format!("/session/{session}{path}"), Some(body))
    }

    pub(crate) fn open(&self, address: &str) -> Result<(), Failure> {
        self.call("/url", &json!({ "url": address }))?;
        Ok(())
    }

    /// Runs the body of a function in the page, and gives back what it returns.
    pub(crate) fn run(&self, script: &str) -> Result<Value, Failure> {
        self.call("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs it until it returns something that counts as true.
    pub(crate) fn wait_for(&self, script: &str) -> Result<Value, Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.run(script)?;
            let is_there = !matches!(answer, Value::Null | Value::Bool(false))
                && answer != json!("")
                && answer != json!(0);
            if is_there {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(format!("the page never did: {script}").into());
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Hands a file to the page's file chooser.
    pub(crate) fn choose_file(&self, file: &Path) -> Result<(), Failure> {
        let chooser = json!({ "using": "css selector", "value": "input[type=file]" });
        let element = self.call("/element", &chooser)?;
        let id = element[ELEMENT].as_str().ok_or("the page has no file chooser")?;
        self.call(&format!("/element/{id}/value"), &json!({ "text": file }))?;
        Ok(())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            // It ends with the driver at the latest.
            let _ = request(self.port, "DELETE", &format!("/session/{session}"), None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // A folder that cannot be removed is only untidy.
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// One request to the driver; its `value`.
fn request(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let body = body.map_or_else(String::new, Value::to_string);
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(2 * PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let answer = read_body(&mut stream)?;
    let value = serde_json::from_slice::<Value>(&answer)?["value"].take();
    match value["error"].as_str() {
        Some(error) => Err(format!("{path}: {error}: {}", value["message"]).into()),
        None => Ok(value),
    }
}

/// The body of an answer, as long as its head says: the driver keeps the connection open.
fn read_body(stream: &mut TcpStream) -> Result<Vec<u8>, Failure> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.ok_or("an answer without a length")?.trim().parse()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
