// Dialogs: a button with `data-opens="id"` opens one; it is closed by Escape, by `data-closes`, or beside it.
import { each } from "./part";

each<HTMLElement>("[data-opens]", (button) => {
  button.addEventListener("click", () => {
    const dialog = document.getElementById(button.dataset["opens"] ?? "");
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
  });
});
each<HTMLElement>("[data-closes]", (button) => {
  button.addEventListener("click", () => button.closest("dialog")?.close());
});
each<HTMLDialogElement>("dialog", (dialog) => {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
});
