// A look at a file: texts and PDFs are fetched when asked for; pictures are simply shown by the page.
import { each, say } from "./part";

const MOST_TEXT = 100_000;

each<HTMLButtonElement>("button[data-preview]", (button) => {
  const place = document.getElementById(button.getAttribute("aria-controls") ?? "");
  if (!place) return;
  button.addEventListener("click", () => void toggle(button, place));
});

async function toggle(button: HTMLButtonElement, place: HTMLElement): Promise<void> {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  place.hidden = isOpen;
  if (isOpen || place.childElementCount) return;
  place.replaceChildren(await shown(button));
}

async function shown(button: HTMLButtonElement): Promise<HTMLElement> {
  const path = button.dataset["preview"] ?? "";
  const isText = button.dataset["kind"] === "text";
  const response = await fetch(path, isText ? { headers: { Range: `bytes=0-${MOST_TEXT - 1}` } } : {});
  if (!response.ok) {
    const refused = document.createElement("p");
    refused.textContent = say("no-preview");
    return refused;
  }
  if (isText) {
    const text = document.createElement("pre");
    text.tabIndex = 0;
    text.textContent = await response.text();
    return text;
  }
  const frame = document.createElement("iframe");
  frame.title = button.dataset["name"] ?? "";
  frame.src = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: "application/pdf" }));
  return frame;
}
