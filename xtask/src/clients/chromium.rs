//! A headless Chromium, driven through chromedriver by the W3C `WebDriver` protocol. It ends on
//! drop.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::on_path;

/// The longest wait for a condition on a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running Chromium.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Driver,
    session: String,
    folder: PathBuf,
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

impl Browser {
    /// Starts a Chromium that writes only below `folder` and resolves only local host names.
    pub(crate) fn start(
        [chromium, chromedriver]: &[PathBuf; 2],
        folder: &Path,
    ) -> Result<Self, Failure> {
        let downloads = folder.join("downloads");
        fs::create_dir_all(&downloads)?;
        let driver = Driver::start(chromedriver)?;
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let options = json!({
            "binary": chromium,
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--lang=en-US",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1", profile,
            ],
            "prefs": { "download.default_directory": downloads },
        });
        let wish = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "timeouts": { "script": 120_000, "pageLoad": 120_000 },
        } } });
        let session = driver.call("POST", "/session", &wish)?;
        let session = session["sessionId"].as_str().ok_or("no session")?.to_owned();
        let browser = Browser { driver, session, folder: folder.to_owned() };
        browser.window(1600, 1000)?;
        // Chromium's own requests at its start are not the page's.
        browser.open("about:blank")?;
        browser.log("performance")?;
        Ok(browser)
    }

    pub(crate) fn window(&self, width: u32, height: u32) -> Result<(), Failure> {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size)
    }

    pub(crate) fn prefer(&self, scheme: &str) -> Result<(), Failure> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features)
    }

    fn devtools(&self, command: &str, parameters: &Value) -> Result<(), Failure> {
        self.call("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))?;
        Ok(())
    }

    /// Opens an address.
    pub(crate) fn open(&self, address: &str) -> Result<(), Failure> {
        self.call("POST", "/url", &json!({ "url": address }))?;
        Ok(())
    }

    /// Runs a function body in the page, and awaits promises.
    pub(crate) fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure> {
        self.call("POST", "/execute/sync", &json!({ "script": body, "args": arguments }))
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&self, expression: &str) -> Result<(), Failure> {
        self.wait_for(&format!("return Boolean({expression})"))?;
        Ok(())
    }

    /// Runs a function body until its result is truthy, and returns that result.
    pub(crate) fn wait_for(&self, body: &str) -> Result<Value, Failure> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let answer = self.run(body, &[])?;
            if ![Value::Null, json!(false), json!(0), json!("")].contains(&answer) {
                return Ok(answer);
            }
            if Instant::now() > deadline {
                return Err(format!("after a minute the page still does not: {body}").into());
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Clicks the middle of the element.
    pub(crate) fn click(&self, selector: &str) -> Result<(), Failure> {
        let element = self.element(selector)?;
        self.call("POST", &format!("/element/{element}/click"), &json!({}))?;
        Ok(())
    }

    /// Types into the element.
    pub(crate) fn type_into(&self, selector: &str, text: &str) -> Result<(), Failure> {
        let element = self.element(selector)?;
        self.call("POST", &format!("/element/{element}/value"), &json!({ "text": text }))?;
        Ok(())
    }

    /// Selects a file in the page's file chooser.
    pub(crate) fn choose_file(&self, file: &Path) -> Result<(), Failure> {
        self.type_into("input[type=file]", file.to_str().ok_or("a path that is no text")?)
    }

    fn element(&self, selector: &str) -> Result<String, Failure> {
        let wish = json!({ "using": "css selector", "value": selector });
        let found = self.call("POST", "/element", &wish)?;
        let mut names = found.as_object().into_iter().flat_map(|found| found.values());
        Ok(names.next().and_then(Value::as_str).ok_or("an element without a name")?.to_owned())
    }

    /// Presses keys; each is held until all are down.
    pub(crate) fn press(&self, keys: &[&str]) -> Result<(), Failure> {
        let key = |kind: &'static str| move |key: &&str| json!({ "type": kind, "value": key });
        let down = keys.iter().map(key("keyDown"));
        let actions: Vec<Value> = down.chain(keys.iter().rev().map(key("keyUp"))).collect();
        let all = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        self.call("POST", "/actions", &all)?;
        Ok(())
    }

    /// Saves a screenshot of the visible area.
    pub(crate) fn picture(&self, file: &Path) -> Result<(), Failure> {
        use base64::Engine;
        let picture = self.call("GET", "/screenshot", &Value::Null)?;
        let text = picture.as_str().ok_or("no picture")?;
        fs::write(
            file,
            base64::prelude::BASE64_STANDARD.decode(text).map_err(|error| error.to_string())?,
        )?;
        Ok(())
    }

    /// Returns the log entries since the last call: errors for `browser`, requests for
    /// `performance`.
    pub(crate) fn log(&self, kind: &str) -> Result<Vec<String>, Failure> {
        let log = self.call("POST", "/se/log", &json!({ "type": kind }))?;
        let entries = log.as_array().ok_or("no log")?;
        Ok(entries
            .iter()
            .filter_map(|entry| entry["message"].as_str().map(str::to_owned))
            .collect())
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.folder.join("downloads")
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        self.driver.call(method, &format!("/session/{}{path}", self.session), body)
    }
}

impl Drop for Browser {
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
