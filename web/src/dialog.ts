// Dialogs: a button with `data-opens="id"` opens one; it is closed by Escape, by `data-closes`, or beside it.
// One for all rows of a list is told by the button which it is about: `data-given` of the button is put where the dialog has `data-given`.
import { each } from "./part";

each<HTMLElement>("[data-opens]", (button) => {
  button.addEventListener("click", () => {
    const dialog = document.getElementById(button.dataset["opens"] ?? "");
    if (!(dialog instanceof HTMLDialogElement)) return;
    for (const place of dialog.querySelectorAll("[data-given]")) {
      if (place instanceof HTMLInputElement) place.value = button.dataset["given"] ?? "";
      else place.textContent = button.dataset["given"] ?? "";
    }
    dialog.showModal();
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
