// The order made by hand: rows of `data-order` are dragged, or moved by the buttons that each has for it.
import { each, say, tell } from "./part";
import { ask, wordsFor, type Problem } from "./api";
import { rereadAll } from "./live";

each<HTMLElement>("[data-order]", (list) => {
  let dragged: HTMLElement | undefined;
  list.addEventListener("dragstart", (event) => {
    dragged = (event.target as HTMLElement).closest<HTMLElement>("[data-job]") ?? undefined;
    dragged?.classList.add("is-dragged");
    event.dataTransfer?.setData("text/plain", dragged?.dataset["job"] ?? "");
  });
  list.addEventListener("dragover", (event) => {
    const over = (event.target as HTMLElement).closest<HTMLElement>("[data-job]");
    if (!dragged || !over || over === dragged) return;
    event.preventDefault();
    const middle = over.getBoundingClientRect().top + over.offsetHeight / 2;
    if (event.clientY < middle) over.before(dragged);
    else over.after(dragged);
  });
  list.addEventListener("drop", (event) => event.preventDefault());
  list.addEventListener("dragend", () => {
    dragged?.classList.remove("is-dragged");
    if (dragged) void place(dragged);
    dragged = undefined;
  });
  list.addEventListener("click", (event) => {
    const button = (event.target as HTMLElement).closest<HTMLElement>("[data-move]");
    const row = button?.closest<HTMLElement>("[data-job]");
    if (!button || !row) return;
    const other = button.dataset["move"] === "up" ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    if (button.dataset["move"] === "up") other.before(row);
    else other.after(row);
    button.focus();
    void place(row);
  });
});

/** Tells the engine beside which item this one is now. */
async function place(row: HTMLElement): Promise<void> {
  const before = (row.nextElementSibling as HTMLElement | null)?.dataset["job"];
  const after = (row.previousElementSibling as HTMLElement | null)?.dataset["job"];
  const body = after ? `{"after":${after}}` : before ? `{"before":${before}}` : undefined;
  if (!body) return;
  try {
    await ask("POST", `/api/items/${row.dataset["job"]}/move`, body);
    tell(say("moved"));
  } catch (problem) {
    tell(wordsFor(problem as Problem));
    rereadAll();
  }
}
