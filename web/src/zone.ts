// Times are shown in the zone where the person is: the server learns it by a cookie.
import { cookie } from "./part";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && decodeURIComponent(cookie("mutirao_zone") ?? "") !== zone) {
  document.cookie = `mutirao_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  // Whoever has come by a link, and not by signing in here, sees times that are not theirs: once.
  if (document.body.dataset["zone"] && document.cookie.includes("mutirao_zone")) location.reload();
}
