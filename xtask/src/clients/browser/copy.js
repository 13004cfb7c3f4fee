// Selects the whole page, and returns the text that its copy handler puts on the clipboard.
getSelection().selectAllChildren(document.body);
const event = new ClipboardEvent("copy", { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
document.dispatchEvent(event);
getSelection().removeAllRanges();
return event.clipboardData.getData("text/plain");
