// What a running program is asked to do, and files that are opened.
"use strict";

let isActing = false;
let clock;

const ACTED = {
  "measure": "measured", "measure-briefly": "measured", "minimize": "asked to release memory, and measured",
  "measure-anonymized": "measured without private words", "track": "tracked from now on", "untrack": "no longer tracked",
};

/** Measures again and again, without the dumps of DMD, which are big; a program that takes long is not asked twice at once. */
function measureEvery(seconds) {
  clearInterval(clock);
  if (seconds > 0) {
    clock = setInterval(() => isActing || act("measure-briefly"), seconds * 1000);
  }
}

/** The program that is acted on: that of the moment that is shown. */
function actedOn() {
  const shown = present()?.source;
  return service.sources.find(({ id }) => id === shown) ?? service.sources.find(({ id }) => String(id) === $("source").value);
}

/** Asks the server to do something to the program that is shown; what comes of it is a new moment. */
async function act(action) {
  const program = actedOn();
  if (!program) {
    tell("No program is shown: choose one.");
    return null;
  }
  isActing = true;
  const buttons = $("actions").querySelectorAll("button");
  buttons.forEach(button => (button.disabled = true));
  try {
    const { moment } = await service.post(action, program.id);
    await service.update();
    const first = chosen.view === "difference" ? String(present()?.id ?? "") : chosen.first;
    await choose({ moment: String(moment), first: chosen.first && first, second: "" });
    $("acted").textContent = `${program.name}: ${ACTED[action]} at ${timeText(present()?.taken)}.`;
    return moment;
  } catch (fault) {
    tell(`${program.name}: ${fault.message}`);
    return null;
  } finally {
    isActing = false;
    buttons.forEach(button => (button.disabled = false));
    drawActions();
  }
}

async function measureAndSave(action) {
  const moment = await act(action);
  if (moment !== null) {
    save(`/moments/${moment}/file`);
  }
}

function save(address) {
  element("a", { href: address, download: "" }).click();
}

/** Shows the program that is acted on: that of the moment that is shown. Another one is shown before it is acted on. */
function drawActions() {
  const { sources } = service;
  $("actions").hidden = sources.length === 0;
  $("source").replaceChildren(...sources.map(({ id, name }) => element("option", { value: String(id) }, name)));
  $("source").value = String(actedOn()?.id ?? sources[0]?.id ?? "");
  $("source").parentElement.hidden = sources.length < 2;
  const name = actedOn()?.name ?? "";
  for (const id of ["measure", "minimize", "track", "untrack", "measure-and-save", "measure-anonymized"]) {
    $(id).title = name;
    $(id).disabled = isActing || name === "";
  }
  $("save-dump").disabled = !(present()?.sheets.includes("heap"));
}

/** Shows the last moment of another program. */
function showProgram(id) {
  const last = data.moments.filter(({ source }) => String(source) === id).at(-1);
  if (last) {
    choose({ moment: String(last.id), first: "", second: "", base: "" });
  }
}

/** Opens files; two or more are compared. */
async function openFiles(files) {
  const faults = [];
  const ids = [];
  for (const file of files) {
    try {
      ids.push(await data.open(file));
    } catch (fault) {
      faults.push(fault.message);
    }
  }
  if (ids.length > 0) {
    const compared = ids.length > 1 ? { view: "difference", first: ids[0], second: ids[1] } : { view: "trees" };
    await choose({ moment: ids[ids.length - 1], ...compared });
  }
  if (faults.length > 0) {
    tell(faults.join(" "));
  }
}

function listenToFiles() {
  $("open").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", () => openFiles([...$("files").files]).then(() => ($("files").value = "")));
  let depth = 0;
  const hasFiles = event => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", event => {
    depth += 1;
    $("drop").hidden = !hasFiles(event);
  });
  addEventListener("dragleave", () => {
    depth -= 1;
    $("drop").hidden = depth > 0 && !$("drop").hidden ? false : true;
  });
  addEventListener("dragover", event => hasFiles(event) && event.preventDefault());
  addEventListener("drop", event => {
    depth = 0;
    $("drop").hidden = true;
    if (hasFiles(event)) {
      event.preventDefault();
      openFiles([...(event.dataTransfer?.files ?? [])]);
    }
  });
}

function listenToActions() {
  for (const action of ["measure", "minimize", "track", "untrack"]) {
    $(action).addEventListener("click", () => act(action));
  }
  $("every").addEventListener("change", event => measureEvery(Number(event.target.value)));
  $("measure-and-save").addEventListener("click", () => measureAndSave("measure"));
  $("measure-anonymized").addEventListener("click", () => measureAndSave("measure-anonymized"));
  $("save-dump").addEventListener("click", () => save(`/moments/${present().id}/dump`));
  $("source").addEventListener("change", event => showProgram(event.target.value));
}
