//! A headless browser that checks drive: Chromium or Firefox, by the commands of W3C's `WebDriver`.
//! It ends on drop.

pub(crate) mod chromium;
pub(crate) mod firefox;
pub(crate) mod marionette;

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The longest wait for a condition on a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The commands that a browser answers, in the words of `WebDriver`.
pub(crate) trait Remote {
    /// Opens an address.
    fn open(&self, address: &str) -> Result<(), Failure>;

    /// Runs a function body among the page's own names, and awaits promises.
    fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure>;

    /// Returns the element of a selector as the answer to `findElement`.
    fn find(&self, wish: &Value) -> Result<Value, Failure>;

    /// Clicks the middle of an element.
    fn click(&self, element: &str) -> Result<(), Failure>;

    /// Types into an element, or chooses a file.
    fn type_into(&self, element: &str, text: &str) -> Result<(), Failure>;

    /// Performs a list of actions.
    fn perform(&self, actions: &Value) -> Result<(), Failure>;

    /// Returns a picture of the visible area in base64.
    fn picture(&self) -> Result<Value, Failure>;

    /// Gives the page this many pixels.
    fn resize(&self, width: u32, height: u32) -> Result<(), Failure>;

    /// Has the page look light or dark.
    fn prefer(&self, scheme: &str) -> Result<(), Failure>;

    /// Returns the errors of the page since the last call.
    fn complaints(&self) -> Result<Vec<String>, Failure>;

    /// Returns the addresses that the page has requested since the last call.
    fn requests(&self) -> Result<Vec<String>, Failure>;
}

/// A running browser.
pub(crate) struct Browser {
    remote: Box<dyn Remote>,
    downloads: PathBuf,
}

impl Browser {
    /// Starts a browser that writes only below `folder`.
    pub(crate) fn start(
        folder: &Path,
        start: impl FnOnce(&Path) -> Result<Box<dyn Remote>, Failure>,
    ) -> Result<Self, Failure> {
        let downloads = folder.join("downloads");
        fs::create_dir_all(&downloads)?;
        let browser = Browser { remote: start(folder)?, downloads };
        browser.window(1600, 1000)?;
        // Requests of its own at its start are not the page's.
        browser.open("about:blank")?;
        browser.requests()?;
        Ok(browser)
    }

    pub(crate) fn window(&self, width: u32, height: u32) -> Result<(), Failure> {
        self.remote.resize(width, height)
    }

    pub(crate) fn prefer(&self, scheme: &str) -> Result<(), Failure> {
        self.remote.prefer(scheme)
    }

    pub(crate) fn open(&self, address: &str) -> Result<(), Failure> {
        self.remote.open(address)
    }

    /// Runs a function body in the page, and awaits promises.
    pub(crate) fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure> {
        self.remote.run(body, arguments)
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
        self.remote.click(&self.element(selector)?)
    }

    /// Types into the element.
    pub(crate) fn type_into(&self, selector: &str, text: &str) -> Result<(), Failure> {
        self.remote.type_into(&self.element(selector)?, text)
    }

    /// Selects a file in the page's file chooser.
    pub(crate) fn choose_file(&self, file: &Path) -> Result<(), Failure> {
        self.type_into("input[type=file]", file.to_str().ok_or("a path that is no text")?)
    }

    fn element(&self, selector: &str) -> Result<String, Failure> {
        let found = self.remote.find(&json!({ "using": "css selector", "value": selector }))?;
        let mut names = found.as_object().into_iter().flat_map(|found| found.values());
        Ok(names.next().and_then(Value::as_str).ok_or("an element without a name")?.to_owned())
    }

    /// Presses keys; each is held until all are down.
    pub(crate) fn press(&self, keys: &[&str]) -> Result<(), Failure> {
        let key = |kind: &'static str| move |key: &&str| json!({ "type": kind, "value": key });
        let down = keys.iter().map(key("keyDown"));
        let actions: Vec<Value> = down.chain(keys.iter().rev().map(key("keyUp"))).collect();
        self.remote
            .perform(&json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }))
    }

    /// Saves a screenshot of the visible area.
    pub(crate) fn picture(&self, file: &Path) -> Result<(), Failure> {
        use base64::Engine;
        let picture = self.remote.picture()?;
        let text = picture.as_str().ok_or("no picture")?;
        fs::write(
            file,
            base64::prelude::BASE64_STANDARD.decode(text).map_err(|error| error.to_string())?,
        )?;
        Ok(())
    }

    /// Returns the errors of the page since the last call.
    pub(crate) fn complaints(&self) -> Result<Vec<String>, Failure> {
        self.remote.complaints()
    }

    /// Returns the addresses that the page has requested since the last call.
    pub(crate) fn requests(&self) -> Result<Vec<String>, Failure> {
        self.remote.requests()
    }

    pub(crate) fn downloads(&self) -> PathBuf {
        self.downloads.clone()
    }
}
