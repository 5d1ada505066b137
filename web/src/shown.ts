// What an answer tells, put where the page has a place for it.
//
//   <form data-api="POST /api/…/tokens" data-shows="shown" data-field="secret">
//
// A place in a dialog is for secrets: it opens, and forgets what it showed when it is closed.
import { each, say, tell } from "./part";

function written(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const lines = value.map((row: unknown) =>
    typeof row === "object" && row !== null
      ? Object.entries(row)
          .map(([name, cell]) => `${name}: ${String(cell)}`)
          .join(", ")
      : String(row),
  );
  return lines.join("\n");
}

each<HTMLElement>("[data-shows]", (asking) => {
  asking.addEventListener("api:done", (event) => {
    const place = document.getElementById(asking.dataset["shows"] ?? "");
    if (!place) return;
    const told = (event as CustomEvent<Record<string, unknown>>).detail;
    place.textContent = written(told[asking.dataset["field"] ?? ""]);
    place.hidden = false;
    const dialog = place.closest("dialog");
    dialog?.addEventListener("close", () => (place.textContent = ""), { once: true });
    dialog?.showModal();
  });
});

each<HTMLElement>("[data-copies]", (button) => {
  button.addEventListener("click", () => {
    const place = document.getElementById(button.dataset["copies"] ?? "");
    if (place) void copy(place).then(() => tell(say("copied")));
  });
});

/** Without https there is no clipboard for scripts, but there is the browser's own: what is marked can be copied. */
async function copy(place: HTMLElement): Promise<void> {
  const text = place.textContent ?? "";
  if ("clipboard" in navigator) {
    try {
      return await navigator.clipboard.writeText(text);
    } catch {
      // Not allowed here: mark it.
    }
  }
  getSelection()?.selectAllChildren(place);
  document.execCommand("copy");
}
