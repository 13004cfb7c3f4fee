// Runs in Firefox with its privileges: has the page of the selected tab run a function body among its own names, and awaits its promise.
// Arguments: the body, and its arguments. Returns {value} or {error}.
const [body, values, answer] = arguments;

// Runs in the process of the page, with Firefox's privileges there.
async function inPage(name, source) {
  const { addDebuggerToGlobal } = ChromeUtils.importESModule("resource://gre/modules/jsdebugger.sys.mjs");
  const sandbox = new Cu.Sandbox(Services.scriptSecurityManager.getSystemPrincipal(), { freshCompartment: true });
  addDebuggerToGlobal(sandbox);
  const inspector = new sandbox.Debugger();
  const global = inspector.makeGlobalObjectReference(Cu.waiveXrays(content));
  inspector.addDebuggee(Cu.waiveXrays(content));
  const done = global.executeInGlobal(source);
  const text = done.return ? await done.return.unsafeDereference() : JSON.stringify({ error: "no syntax" });
  inspector.removeAllDebuggees();
  sendAsyncMessage(name, text);
}

const source = `(async () => {
  try {
    const value = await (async function () { ${body}
    }).apply(null, ${JSON.stringify(values)});
    return JSON.stringify({ value: value ?? null });
  } catch (error) {
    return JSON.stringify({ error: String(error) });
  }
})()`;
const { messageManager } = gBrowser.selectedBrowser;
const name = `answer-${Math.random()}`;
messageManager.addMessageListener(name, function listen({ data }) {
  messageManager.removeMessageListener(name, listen);
  answer(JSON.parse(data));
});
const script = `(${inPage})(${JSON.stringify(name)}, ${JSON.stringify(source)}).catch(error => sendAsyncMessage(${JSON.stringify(name)}, JSON.stringify({ error: String(error) })))`;
messageManager.loadFrameScript(`data:application/javascript;charset=utf-8,${encodeURIComponent(script)}`, false);
