// Hides what does not hold all the words. Without it the whole list is there.
const words = document.getElementById("words");
document.getElementById("search").hidden = false;
words.addEventListener("input", () => {
  const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll(".rows li")) {
    const said = row.dataset.words.toLowerCase();
    row.hidden = !asked.every((word) => said.includes(word));
    shown += !row.hidden;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  document.getElementById("shown").textContent = asked.length ? `${shown} shown` : "";
});
