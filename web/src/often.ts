// What the server does not hint at is asked for every few seconds, `data-often="4"`, while somebody looks.
import { each } from "./part";
import { reread } from "./live";

each<HTMLElement>("[data-often]", (part) => {
  const timer = window.setInterval(() => {
    if (!part.isConnected) window.clearInterval(timer);
    else if (!document.hidden && !document.querySelector("dialog[open]")) reread("often");
  }, 1000 * Number(part.dataset["often"]));
});
