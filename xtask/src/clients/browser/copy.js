// Selects the whole page, and answers what its own handler gives to the clipboard.
getSelection().selectAllChildren(document.body);
const event = new ClipboardEvent("copy", { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
document.dispatchEvent(event);
getSelection().removeAllRanges();
return event.clipboardData.getData("text/plain");
