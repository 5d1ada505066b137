// An open dialog is left as it is while the page is read again, and so names the revision that somebody saw. Once one that
// was refused is closed, it is brought up to date: whoever was told what changed looks, and tries again.
import { each } from "./part";
import { reread } from "./live";

each<HTMLDialogElement>("#instance dialog", (dialog) => {
  dialog.addEventListener("close", () => {
    if (dialog.querySelector("[data-problem]:not([hidden])")) reread("instance");
  });
});
