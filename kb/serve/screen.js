"use strict";
const typeAtOnce = new MutationObserver(() => {
  if (document.body.classList.contains("-first-byte")) {
    document.querySelector(".xterm-helper-textarea").focus();
    typeAtOnce.disconnect();
  }
});

// Ctrl-V pastes, as everywhere in a browser; the terminal would send a key.
addEventListener("keydown", (event) => {
  if (event.ctrlKey && !event.altKey && event.key.toLowerCase() === "v") {
    event.stopImmediatePropagation();
  }
}, true);

addEventListener("load", async () => {
  // The terminal measures its letters once, so its font is there before it begins.
  const styles = ["16px", "bold 16px", "italic 16px"];
  await Promise.allSettled(styles.map((style) => document.fonts.load(`${style} "Roboto Mono"`)));
  const socket = new URL("ws", location.href);
  socket.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  document.getElementById("terminal").dataset.sessionWebsocketUrl = socket.href.split("?")[0];
  const script = document.createElement("script");
  script.src = "static/js/textual.js";
  script.onload = () => window.onload(); // what it sets for a page that still loads
  document.head.append(script);
  typeAtOnce.observe(document.body, { attributes: true, attributeFilter: ["class"] });
});
