// Runs in Firefox with its privileges: shows files on about:memory and returns the copied text.
// Arguments: {files, verbose, filter, regex}. Returns {text}, {refused} or {trouble}.
const [wish, answer] = arguments;
const browserWindow = Services.wm.getMostRecentWindow("navigator:browser");
const pause = () => new Promise(next => browserWindow.setTimeout(next, 10));

async function wait(seconds, find) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end; await pause()) {
    const found = find();
    if (found) {
      return found;
    }
  }
  return null;
}

async function show(page, faults) {
  const { document } = page;
  const content = () => document.querySelector("#mainDiv");
  const refusal = () => content().querySelector(".badInputWarning")?.textContent ?? faults[0];
  // The treemap, with the total above it, is drawn last.
  const drawn = () => content().querySelector(".sections .treemap")?.closest(".sections");

  document.querySelector("#verbose").checked = wish.verbose;
  if (wish.files.length > 1) {
    page.updateAboutMemoryFromTwoFiles(...wish.files);
  } else {
    page.updateAboutMemoryFromFile(wish.files[0]);
  }
  if (!(await wait(60, () => refusal() || drawn()))) {
    return { trouble: "neither trees nor a refusal: " + content().textContent.slice(0, 200) };
  }
  if (refusal()) {
    return { refused: String(refusal()) };
  }
  if (wish.filter) {
    const before = drawn();
    const field = document.querySelector(".filterItem");
    field.querySelector("input[type=checkbox]").checked = wish.regex;
    field.querySelector(".filterInput").value = wish.filter;
    field.querySelector(".filterInput").dispatchEvent(new page.Event("input"));
    if (!(await wait(20, () => drawn() && drawn() != before))) {
      return { trouble: "the filter changed nothing" };
    }
  }
  return { text: await copied(page) };
}

async function copied(page) {
  const mark = `nothing copied yet ${Math.random()}`;
  Cc["@mozilla.org/widget/clipboardhelper;1"].getService(Ci.nsIClipboardHelper).copyString(mark);
  page.focus();
  for (const command of ["selectAll", "copy"]) {
    page.docShell.doCommand(`cmd_${command}`);
  }
  return await wait(10, () => {
    const carrier = Cc["@mozilla.org/widget/transferable;1"].createInstance(Ci.nsITransferable);
    carrier.init(null);
    carrier.addDataFlavor("text/plain");
    Services.clipboard.getData(carrier, Services.clipboard.kGlobalClipboard);
    const data = {};
    carrier.getTransferData("text/plain", data);
    const text = data.value.QueryInterface(Ci.nsISupportsString).data;
    // A lone surrogate has no UTF-8 form: it becomes U+FFFD, as in our reader.
    return text != mark && text.toWellFormed();
  });
}

(async () => {
  const tabs = browserWindow.gBrowser;
  // A tab of its own, since the page remembers its folds.
  const tab = tabs.addTrustedTab("about:memory");
  tabs.selectedTab = tab;
  const faults = [];
  try {
    const page = await wait(30, () => {
      const inner = tab.linkedBrowser.contentWindow;
      return inner?.document?.querySelector("#mainDiv") && inner.document.readyState == "complete" && inner;
    });
    if (!page) {
      return { trouble: "about:memory did not open" };
    }
    for (const kind of ["error", "unhandledrejection"]) {
      page.addEventListener(kind, event => faults.push(event.message ?? String(event.reason)));
    }
    return await show(page, faults);
  } finally {
    tabs.removeTab(tab);
  }
})().then(answer, fault => answer({ trouble: String(fault) }));
