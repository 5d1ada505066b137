// Files of a form: dropped onto it or chosen, sent at once with progress; the field then holds what the API answered.
import { each, say, tell } from "./part";
import { csrf, wordsFor, type Problem } from "./api";

each<HTMLElement>("[data-file]", (place) => {
  const chooser = place.querySelector<HTMLInputElement>("input[type=file]");
  const held = place.querySelector<HTMLInputElement>("input[data-type=file]");
  if (!chooser || !held) return;
  chooser.addEventListener("change", () => take(chooser.files));
  held.addEventListener("input", () => show(place, held));
  place.addEventListener("dragover", (event) => {
    event.preventDefault();
    place.classList.add("is-over");
  });
  for (const type of ["dragleave", "drop"]) place.addEventListener(type, () => place.classList.remove("is-over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files ?? null);
  });
  function take(files: FileList | null): void {
    const file = files?.[0];
    if (file && held) upload(place, held, file);
  }
  show(place, held);
});

function show(place: HTMLElement, held: HTMLInputElement): void {
  const name = place.querySelector<HTMLElement>("[data-file-name]");
  const value = held.value ? (JSON.parse(held.value) as { name: string }) : undefined;
  if (name && value) name.textContent = value.name;
}

function upload(place: HTMLElement, held: HTMLInputElement, file: File): void {
  const bar = place.querySelector("progress");
  const request = new XMLHttpRequest(); // fetch cannot tell how much has gone
  request.open("POST", `/api/files?name=${encodeURIComponent(file.name)}`);
  request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
  request.setRequestHeader("X-CSRF-Token", csrf());
  if (bar) {
    bar.hidden = false;
    bar.value = 0;
    request.upload.addEventListener("progress", (event) => (bar.value = event.loaded / Math.max(1, event.total)));
  }
  place.setAttribute("aria-busy", "true");
  request.addEventListener("loadend", () => {
    place.removeAttribute("aria-busy");
    if (bar) bar.hidden = true;
    if (request.status !== 201) return refuse(place, request);
    held.value = request.responseText;
    held.dispatchEvent(new Event("input", { bubbles: true }));
    held.form?.dispatchEvent(new CustomEvent("draft:save"));
    tell(say("file-kept", { name: file.name }));
  });
  request.send(file);
}

function refuse(place: HTMLElement, request: XMLHttpRequest): void {
  const wrong = place.querySelector<HTMLElement>("[data-file-problem]");
  if (!wrong) return;
  wrong.hidden = false;
  wrong.textContent = request.status ? wordsFor(JSON.parse(request.responseText) as Problem) : say("away");
}
