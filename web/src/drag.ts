// The order made by hand: rows of `data-order` are dragged, or moved by the buttons that each has for it.
import { each, say, tell } from "./part";
import { ask } from "./api";
import { wordsFor, type Problem } from "./problem";
import { reread } from "./live";

let dragged: HTMLElement | undefined;

each<HTMLElement>("[data-order]", (list) => {
  const rowAt = (event: Event): HTMLElement | undefined =>
    "order" in list.dataset ? ((event.target as Element).closest<HTMLElement>("[data-job]") ?? undefined) : undefined;
  list.addEventListener("dragstart", (event) => {
    dragged = rowAt(event);
    dragged?.classList.add("is-dragged");
    event.dataTransfer?.setData("text/plain", dragged?.dataset["job"] ?? "");
  });
  list.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault(); // or it could not be dropped here
    const over = rowAt(event);
    if (!over || over === dragged) return;
    const middle = over.getBoundingClientRect().top + over.offsetHeight / 2;
    if (event.clientY < middle) over.before(dragged);
    else over.after(dragged);
  });
  list.addEventListener("drop", (event) => event.preventDefault());
  list.addEventListener("dragend", (event) => {
    const row = dragged;
    dragged = undefined;
    row?.classList.remove("is-dragged");
    if (row && event.dataTransfer?.dropEffect !== "none") void place(list, row);
    else reread("worklist"); // let go elsewhere, or by Escape: all is as it was
  });
  list.addEventListener("click", (event) => {
    const button = (event.target as HTMLElement).closest<HTMLElement>("[data-move]");
    const row = rowAt(event);
    if (!button || !row) return;
    const other = button.dataset["move"] === "up" ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    if (button.dataset["move"] === "up") other.before(row);
    else other.after(row);
    button.focus();
    row.scrollIntoView({ block: "nearest" });
    void place(list, row);
  });
});

// What is in somebody's hand is not taken out of it: the list is read again when they let go.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (dragged && (event.target as Element).contains(dragged)) event.preventDefault();
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const detail = (event as CustomEvent<{ target: Element; shouldSwap: boolean }>).detail;
  if (dragged && detail.target.contains(dragged)) detail.shouldSwap = false;
});

/** Tells the engine beside which item this one is now. */
async function place(list: HTMLElement, row: HTMLElement): Promise<void> {
  const above = (row.previousElementSibling as HTMLElement | null)?.dataset["job"];
  const below = (row.nextElementSibling as HTMLElement | null)?.dataset["job"];
  const isReversed = list.dataset["order"] === "reversed";
  const [before, after] = isReversed ? [above, below] : [below, above];
  const body = after ? `{"after":${after}}` : before ? `{"before":${before}}` : undefined;
  if (!body) return;
  try {
    await ask("POST", `/api/items/${row.dataset["job"]}/move`, body);
    tell(say("moved"));
  } catch (problem) {
    tell(wordsFor(problem as Problem));
  }
  reread("worklist"); // and with it what came while it was dragged
}
