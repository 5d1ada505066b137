// Files of a form: dropped onto it or chosen, sent at once with progress; the field then holds what the API answered.
import { each, say, tell } from "./part";
import { csrf } from "./api";
import { wordsFor, type Problem } from "./problem";

each<HTMLElement>("[data-file]", (place) => {
  const chooser = place.querySelector<HTMLInputElement>("input[type=file]");
  const held = place.querySelector<HTMLInputElement>("input[data-type=file]");
  if (!chooser || !held) return;
  chooser.addEventListener("change", () => take(chooser.files));
  held.addEventListener("input", () => show(place, held));
  place.addEventListener("file:dropped", (event) => take((event as CustomEvent<FileList>).detail));
  function take(files: FileList | null): void {
    const file = files?.[0];
    if (file && chooser && held) upload({ place, chooser, held }, file);
  }
  show(place, held);
});

/** Where a file that is dropped here goes: onto its field, or onto a form that has but one. */
function placeFor(event: DragEvent): HTMLElement | undefined {
  const target = event.target as Element;
  const near = target.closest<HTMLElement>("[data-file]");
  if (near) return near;
  const all = target.closest("form")?.querySelectorAll<HTMLElement>("[data-file]") ?? [];
  return all.length === 1 ? all[0] : undefined;
}

function mark(over: HTMLElement | undefined): void {
  for (const each of document.querySelectorAll("[data-file].is-over")) if (each !== over) each.classList.remove("is-over");
  over?.classList.add("is-over");
}

// A file that is dropped beside a field would replace the page, and with it what was typed.
const hasFiles = (event: DragEvent): boolean =>
  Boolean(event.dataTransfer?.types.includes("Files") && document.querySelector("[data-file]"));
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  mark(placeFor(event));
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) mark(undefined);
});
document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  mark(undefined);
  placeFor(event)?.dispatchEvent(new CustomEvent("file:dropped", { detail: event.dataTransfer?.files }));
});

function show(place: HTMLElement, held: HTMLInputElement): void {
  const name = place.querySelector<HTMLElement>("[data-file-name]");
  if (name) name.textContent = held.value ? (JSON.parse(held.value) as { name: string }).name : "";
}

type Field = { place: HTMLElement; chooser: HTMLInputElement; held: HTMLInputElement };

function upload({ place, chooser, held }: Field, file: File): void {
  const request = new XMLHttpRequest(); // fetch cannot tell how much has gone
  request.open("POST", `/api/files?name=${encodeURIComponent(file.name)}`);
  request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
  request.setRequestHeader("X-CSRF-Token", csrf());
  begin(place, request);
  chooser.setCustomValidity(say("file-coming", { name: file.name })); // the form is not sent without it
  request.addEventListener("loadend", () => {
    place.removeAttribute("aria-busy");
    chooser.setCustomValidity("");
    chooser.value = ""; // the same one may be chosen again
    if (request.status !== 201) return refuse(place, request);
    held.value = request.responseText;
    held.dispatchEvent(new Event("input", { bubbles: true }));
    held.form?.dispatchEvent(new CustomEvent("draft:save"));
    tell(say("file-kept", { name: file.name }));
  });
  request.send(file);
}

function begin(place: HTMLElement, request: XMLHttpRequest): void {
  place.setAttribute("aria-busy", "true");
  const wrong = place.querySelector<HTMLElement>("[data-file-problem]");
  if (wrong) wrong.hidden = true;
  const bar = place.querySelector("progress");
  if (!bar) return;
  bar.hidden = false;
  bar.value = 0;
  request.upload.addEventListener("progress", (event) => (bar.value = event.loaded / Math.max(1, event.total)));
  request.addEventListener("loadend", () => (bar.hidden = true));
}

function refuse(place: HTMLElement, request: XMLHttpRequest): void {
  const wrong = place.querySelector<HTMLElement>("[data-file-problem]");
  if (!wrong) return;
  wrong.hidden = false;
  wrong.textContent = problemOf(request);
}

function problemOf(request: XMLHttpRequest): string {
  try {
    return wordsFor(JSON.parse(request.responseText) as Problem);
  } catch {
    return say("away");
  }
}
