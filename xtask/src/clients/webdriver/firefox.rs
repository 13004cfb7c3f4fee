//! Firefox, driven over Marionette. Scripts run among the page's own names, as in Chromium, and
//! whatever its policy forbids: by Firefox's debugger.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::Path;

use super::Remote;
use super::marionette::Marionette;
use crate::failure::Failure;

/// A running Firefox with one tab.
#[derive(Debug)]
struct Firefox(RefCell<Marionette>);

/// Starts a Firefox that writes only below `folder`.
pub(crate) fn start(program: &Path, folder: &Path) -> Result<Box<dyn Remote>, Failure> {
    Ok(Box::new(Firefox(RefCell::new(Marionette::start(program, folder)?))))
}

impl Firefox {
    fn call(&self, name: &str, parameters: &Value) -> Result<Value, Failure> {
        let answer = self.0.borrow_mut().call(&format!("WebDriver:{name}"), parameters)?;
        Ok(answer.get("value").cloned().unwrap_or(answer))
    }

    fn run_in_browser(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure> {
        self.0.borrow_mut().run_in_browser(body, arguments)
    }

    fn texts(&self, body: &str) -> Result<Vec<String>, Failure> {
        let texts = self.run_in_browser(body, &[])?;
        let texts = texts.as_array().ok_or("no list")?;
        Ok(texts.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

impl Remote for Firefox {
    fn open(&self, address: &str) -> Result<(), Failure> {
        self.call("Navigate", &json!({ "url": address }))?;
        Ok(())
    }

    fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let arguments = [json!(body), json!(arguments)];
        let answer = self.run_in_browser(include_str!("run_in_page.js"), &arguments)?;
        match answer["error"].as_str() {
            Some(error) => Err(error.into()),
            None => Ok(answer["value"].clone()),
        }
    }

    fn find(&self, wish: &Value) -> Result<Value, Failure> {
        self.call("FindElement", wish)
    }

    fn click(&self, element: &str) -> Result<(), Failure> {
        self.call("ElementClick", &json!({ "id": element }))?;
        Ok(())
    }

    fn type_into(&self, element: &str, text: &str) -> Result<(), Failure> {
        self.call("ElementSendKeys", &json!({ "id": element, "text": text }))?;
        Ok(())
    }

    fn perform(&self, actions: &Value) -> Result<(), Failure> {
        self.call("PerformActions", actions)?;
        Ok(())
    }

    fn picture(&self) -> Result<Value, Failure> {
        self.call("TakeScreenshot", &json!({ "full": false }))
    }

    fn resize(&self, width: u32, height: u32) -> Result<(), Failure> {
        // The window has a least width; the page in it has none.
        self.run_in_browser(
            "const [width, height, done] = arguments;
             const { style } = gBrowser.selectedBrowser;
             for (const [name, size] of Object.entries({ width, height })) {
               for (const limit of ['', 'min-', 'max-']) {
                 style.setProperty(limit + name, `${size}px`);
               }
             }
             gBrowser.selectedBrowser.getBoundingClientRect();
             window.setTimeout(done, 100);",
            &[json!(width), json!(height)],
        )?;
        Ok(())
    }

    fn prefer(&self, scheme: &str) -> Result<(), Failure> {
        self.run_in_browser(
            "const [scheme, done] = arguments;
             const name = 'layout.css.prefers-color-scheme.content-override';
             Services.prefs.setIntPref(name, scheme === 'dark' ? 0 : 1);
             done();",
            &[json!(scheme)],
        )?;
        Ok(())
    }

    fn complaints(&self) -> Result<Vec<String>, Failure> {
        // Errors of pages, without Firefox's own and without warnings.
        self.texts(
            "const [done] = arguments;
             const isOfPage = ({ sourceName }) => /^(file|http|data|blob):/.test(sourceName ?? '');
             const errors = Services.console.getMessageArray().filter(message =>
               message instanceof Ci.nsIScriptError && !(message.flags & Ci.nsIScriptError.warningFlag)
                 && isOfPage(message));
             Services.console.reset();
             done(errors.map(error => error.message));",
        )
    }

    fn requests(&self) -> Result<Vec<String>, Failure> {
        self.texts(
            "const [done] = arguments;
             if (!window.requestedByPages) {
               window.requestedByPages = [];
               Services.obs.addObserver(channel => {
                 const { loadInfo, URI } = channel.QueryInterface(Ci.nsIHttpChannel);
                 if (loadInfo.browsingContextID === gBrowser.selectedBrowser.browsingContext.id) {
                   window.requestedByPages.push(URI.spec);
                 }
               }, 'http-on-modify-request');
             }
             done(window.requestedByPages.splice(0));",
        )
    }
}
