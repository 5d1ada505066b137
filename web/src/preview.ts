// A look at a file: a text, a picture or a PDF is fetched when somebody asks for it.
import { each, say } from "./part";

const MOST_TEXT = 100_000;

each<HTMLButtonElement>("button[data-preview]", (button) => {
  const place = document.getElementById(button.getAttribute("aria-controls") ?? "");
  if (place) button.addEventListener("click", () => void toggle(button, place));
});

async function toggle(button: HTMLButtonElement, place: HTMLElement): Promise<void> {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  place.hidden = isOpen;
  if (isOpen || place.childElementCount) return;
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...(await shown(button)));
  } catch {
    place.replaceChildren(line(say("no-preview")));
  }
  place.removeAttribute("aria-busy");
}

async function shown(button: HTMLButtonElement): Promise<HTMLElement[]> {
  const { preview = "", kind, name = "" } = button.dataset;
  if (kind === "image") return [await picture(preview, name)];
  const isText = kind === "text";
  const response = await fetch(preview, isText ? { headers: { Range: `bytes=0-${MOST_TEXT - 1}` } } : {});
  if (!response.ok) throw new Error(response.statusText);
  return isText ? text(await response.text(), response.status === 206, name) : [frame(await response.arrayBuffer(), name)];
}

function text(content: string, isPart: boolean, name: string): HTMLElement[] {
  const shown = document.createElement("pre");
  shown.tabIndex = 0;
  shown.setAttribute("role", "region");
  shown.setAttribute("aria-label", name);
  shown.textContent = content;
  return isPart ? [shown, line(say("preview-part"))] : [shown];
}

async function picture(path: string, name: string): Promise<HTMLElement> {
  const shown = document.createElement("img");
  shown.alt = name;
  shown.src = path;
  await shown.decode();
  return shown;
}

function frame(content: ArrayBuffer, name: string): HTMLElement {
  const shown = document.createElement("iframe");
  shown.title = name;
  shown.src = URL.createObjectURL(new Blob([content], { type: "application/pdf" }));
  return shown;
}

function line(words: string): HTMLElement {
  const shown = document.createElement("p");
  shown.className = "hint";
  shown.textContent = words;
  return shown;
}
