//! A Firefox on an empty profile, driven over Marionette, its own protocol. It ends on drop.

use crate::failure::Failure;
use crate::on_path;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A running Firefox.
#[derive(Debug)]
pub(crate) struct Marionette {
    child: Child,
    directory: PathBuf,
    connection: TcpStream,
    requests: u64,
}

/// Settings of the profile: English, without network access.
const PREFERENCES: &str = r#"
user_pref("marionette.port", 0);
user_pref("intl.locale.requested", "en-US");
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.download.folderList", 2);
user_pref("browser.safebrowsing.malware.enabled", false);
user_pref("browser.safebrowsing.phishing.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("termsofuse.bypassNotification", true);
user_pref("toolkit.telemetry.enabled", false);
"#;

/// Returns the Firefox in `$FIREFOX`, or one of the usual names on the path.
pub(crate) fn find() -> Result<PathBuf, String> {
    match std::env::var_os("FIREFOX") {
        Some(named) => Ok(PathBuf::from(named)),
        None => on_path::find(&["firefox-esr", "firefox"], "firefox-esr"),
    }
}

impl Marionette {
    /// Starts a Firefox that writes only to `directory`.
    pub(crate) fn start(program: &Path, directory: &Path) -> Result<Self, Failure> {
        let profile = directory.join("profile");
        fs::create_dir_all(&profile)?;
        let downloads = json!(directory.join("downloads"));
        let folder = format!("user_pref(\"browser.download.dir\", {downloads});\n");
        fs::write(profile.join("user.js"), PREFERENCES.to_owned() + &folder)?;
        let log = fs::File::create(directory.join("log"))?;
        let child = Command::new(program)
            .args([
                "--headless",
                "--no-remote",
                "--marionette",
                "--remote-allow-system-access",
                "--profile",
            ])
            .arg(&profile)
            .arg("about:blank")
            .env("HOME", directory)
            .env("LC_ALL", "C.UTF-8")
            .env("MOZ_CRASHREPORTER_DISABLE", "1")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut starting = Starting(Some(child));
        let connection = starting.connect(&profile.join("MarionetteActivePort"))?;
        let child = starting.0.take().ok_or("Firefox is gone")?;
        let mut firefox =
            Marionette { child, directory: directory.to_owned(), connection, requests: 0 };
        firefox.read_packet()?;
        firefox.call("WebDriver:NewSession", &json!({"capabilities": {}}))?;
        Ok(firefox)
    }

    /// Runs a function body with the browser's own rights. Its last argument takes the result.
    pub(crate) fn run_in_browser(
        &mut self,
        body: &str,
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        self.call("Marionette:SetContext", &json!({"value": "chrome"}))?;
        let script = json!({
            "script": body,
            "args": arguments,
            "sandbox": "system",
            "newSandbox": true,
            "scriptTimeout": 120_000,
        });
        let answer = self.call("WebDriver:ExecuteAsyncScript", &script);
        self.call("Marionette:SetContext", &json!({"value": "content"}))?;
        Ok(answer?["value"].clone())
    }

    /// Returns the version: `140.10.2`.
    pub(crate) fn version(&mut self) -> Result<String, Failure> {
        let version = self.run_in_browser("arguments[0](Services.appinfo.version)", &[])?;
        Ok(version.as_str().ok_or("no version")?.to_owned())
    }

    /// Sends a command about the page, and returns its answer.
    pub(crate) fn call(&mut self, name: &str, parameters: &Value) -> Result<Value, Failure> {
        self.requests += 1;
        let packet = json!([0, self.requests, name, parameters]).to_string();
        write!(self.connection, "{}:{packet}", packet.len())?;
        loop {
            let answer = self.read_packet()?;
            if answer[1] == json!(self.requests) {
                return if answer[2].is_null() {
                    Ok(answer[3].clone())
                } else {
                    Err(format!("{name}: {}", answer[2]).into())
                };
            }
        }
    }

    /// Reads a packet, which has the form `LENGTH:JSON`.
    fn read_packet(&mut self) -> Result<Value, Failure> {
        let mut length = 0;
        loop {
            let mut byte = [0];
            self.connection.read_exact(&mut byte)?;
            match byte[0] {
                b':' => break,
                digit => {
                    let digit = char::from(digit).to_digit(10).ok_or("no Marionette packet")?;
                    length = length * 10 + digit as usize;
                }
            }
        }
        let mut packet = vec![0; length];
        self.connection.read_exact(&mut packet)?;
        Ok(serde_json::from_slice(&packet)?)
    }
}

impl Drop for Marionette {
    fn drop(&mut self) {
        // Quitting also ends the content processes; the kill is for a Firefox that no longer
        // responds.
        let is_quitting = self.call("Marionette:Quit", &json!({"flags": ["eForceQuit"]})).is_ok();
        if !(is_quitting && ends_within(&mut self.child, Duration::from_secs(10))) {
            end(&mut self.child);
        }
        // A directory that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A Firefox that has not responded yet. It ends on drop.
struct Starting(Option<Child>);

impl Starting {
    fn connect(&mut self, port_file: &Path) -> Result<TcpStream, Failure> {
        let deadline = Instant::now() + Duration::from_secs(90);
        while Instant::now() < deadline {
            if let Some(status) = self.0.as_mut().and_then(|child| child.try_wait().ok().flatten())
            {
                return Err(format!("Firefox ended at its start: {status}").into());
            }
            if let Some(port) =
                fs::read_to_string(port_file).ok().and_then(|text| text.trim().parse::<u16>().ok())
            {
                let connection = TcpStream::connect(("127.0.0.1", port))?;
                connection.set_read_timeout(Some(Duration::from_secs(150)))?;
                connection.set_nodelay(true)?;
                return Ok(connection);
            }
            sleep(Duration::from_millis(50));
        }
        Err("Firefox did not open its Marionette port within 90 seconds".into())
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn ends_within(child: &mut Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}
