//! Chromium, driven through chromedriver.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Remote;
use crate::failure::Failure;
use crate::on_path;

/// A running Chromium.
#[derive(Debug)]
struct Chromium {
    driver: Driver,
    session: String,
}

/// A running chromedriver, which also ends its Chromium.
#[derive(Debug)]
struct Driver {
    child: Child,
    port: u16,
}

/// Returns the paths of Chromium and chromedriver, or the name of the missing one.
pub(crate) fn find() -> Result<[PathBuf; 2], String> {
    let chromium = on_path::find(&["chromium", "chromium-browser", "google-chrome"], "chromium")?;
    Ok([chromium, on_path::find(&["chromedriver"], "chromium-driver")?])
}

/// Starts a Chromium that writes only below `folder` and resolves only local host names.
pub(crate) fn start(
    [chromium, chromedriver]: &[PathBuf; 2],
    folder: &Path,
) -> Result<Box<dyn Remote>, Failure> {
    let driver = Driver::start(chromedriver)?;
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let options = json!({
        "binary": chromium,
        "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--lang=en-US",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1", profile,
        ],
        "prefs": { "download.default_directory": folder.join("downloads") },
    });
    let wish = json!({ "capabilities": { "alwaysMatch": {
        "goog:chromeOptions": options,
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        "timeouts": { "script": 120_000, "pageLoad": 120_000 },
    } } });
    let session = driver.call("POST", "/session", &wish)?;
    let session = session["sessionId"].as_str().ok_or("no session")?.to_owned();
    Ok(Box::new(Chromium { driver, session }))
}

impl Chromium {
    fn devtools(&self, command: &str, parameters: &Value) -> Result<(), Failure> {
        self.call("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))?;
        Ok(())
    }

    /// Returns the log entries since the last call: errors for `browser`, requests for
    /// `performance`.
    fn log(&self, kind: &str) -> Result<Vec<String>, Failure> {
        let log = self.call("POST", "/se/log", &json!({ "type": kind }))?;
        let entries = log.as_array().ok_or("no log")?;
        Ok(entries
            .iter()
            .filter_map(|entry| entry["message"].as_str().map(str::to_owned))
            .collect())
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        self.driver.call(method, &format!("/session/{}{path}", self.session), body)
    }
}

impl Remote for Chromium {
    fn open(&self, address: &str) -> Result<(), Failure> {
        self.call("POST", "/url", &json!({ "url": address }))?;
        Ok(())
    }

    fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure> {
        self.call("POST", "/execute/sync", &json!({ "script": body, "args": arguments }))
    }

    fn find(&self, wish: &Value) -> Result<Value, Failure> {
        self.call("POST", "/element", wish)
    }

    fn click(&self, element: &str) -> Result<(), Failure> {
        self.call("POST", &format!("/element/{element}/click"), &json!({}))?;
        Ok(())
    }

    fn type_into(&self, element: &str, text: &str) -> Result<(), Failure> {
        self.call("POST", &format!("/element/{element}/value"), &json!({ "text": text }))?;
        Ok(())
    }

    fn perform(&self, actions: &Value) -> Result<(), Failure> {
        self.call("POST", "/actions", actions)?;
        Ok(())
    }

    fn picture(&self) -> Result<Value, Failure> {
        self.call("GET", "/screenshot", &Value::Null)
    }

    fn resize(&self, width: u32, height: u32) -> Result<(), Failure> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size)
    }

    fn prefer(&self, scheme: &str) -> Result<(), Failure> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features)
    }

    fn complaints(&self) -> Result<Vec<String>, Failure> {
        self.log("browser")
    }

    fn requests(&self) -> Result<Vec<String>, Failure> {
        let mut addresses = Vec::new();
        for entry in self.log("performance")? {
            let entry: Value = serde_json::from_str(&entry)?;
            let message = &entry["message"];
            if message["method"] == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"].as_str();
                addresses.push(url.unwrap_or_default().to_owned());
            }
        }
        Ok(addresses)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Chromium ends with its session; otherwise chromedriver ends it.
        let _ = self.call("DELETE", "", &Value::Null);
    }
}

impl Driver {
    /// Starts chromedriver on a free port, which it prints on its first lines.
    fn start(program: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(["--port=0", "--log-level=SEVERE"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output of chromedriver")?;
        let mut driver = Driver { child, port: 0 };
        let mut output = BufReader::new(output);
        let mut line = String::new();
        while output.read_line(&mut line)? > 0 {
            let port = line.trim_end().trim_end_matches('.').rsplit_once("successfully on port ");
            if let Some((_, port)) = port {
                driver.port = port.parse()?;
                // A reader drains the rest of the output, so that chromedriver never blocks on a
                // full pipe.
                std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
                return Ok(driver);
            }
            line.clear();
        }
        Err("chromedriver ended without naming its port".into())
    }

    /// Sends one request on a connection of its own, and returns the answer.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(150)))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
            self.port
        )?;
        let body = read_answer(&mut BufReader::new(stream))?;
        let value = serde_json::from_slice::<Value>(&body)?["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!(
                "{error}: {}",
                value["message"].as_str().unwrap_or_default().lines().next().unwrap_or_default()
            )
            .into()),
            None => Ok(value),
        }
    }
}

/// Reads the body of an answer by its content length, since the driver may keep the connection
/// open.
fn read_answer(answer: &mut dyn BufRead) -> Result<Vec<u8>, Failure> {
    let mut length = 0;
    let mut line = String::new();
    while answer.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    Ok(body)
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
