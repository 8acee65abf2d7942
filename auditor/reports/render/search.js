"use strict";
// Search of a page's records. It makes no request, and every text enters the page by textContent.
(() => {
  const MAX_NEW_ROWS = 50, MAX_BLOCKING_MS = 30, MAX_EXCERPT_LENGTH = 90;
  const find = (id) => document.getElementById(id);
  const section = find("search"), form = find("search-form"), status = find("search-status");
  const list = find("search-results"), more = find("search-more");
  const selects = [...form.querySelectorAll("select")], field = form.querySelector("input");
  const groups = document.querySelectorAll("script.search-records");
  const { sizes, choices } = JSON.parse(find("search-index").textContent);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let matches = [], pattern = null, lastRun = 0, timer = 0;
  let current = { group: -1, records: [] };

  // The records of a group, parsed when they are needed: [title, detail, tags, text, page].
  const read = (group) => {
    if (current.group !== group) current = { group, records: JSON.parse(groups[group].textContent) };
    return current.records;
  };
  const make = (tag, text, className = "") => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.textContent = text;
    return node;
  };
  const makePattern = (text) => text ? new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu") : null;

  const appendMarked = (node, text) => {
    let end = 0;
    for (const match of pattern ? text.matchAll(pattern) : []) {
      node.append(make("span", text.slice(end, match.index)), make("mark", match[0]));
      end = match.index + match[0].length;
    }
    node.append(make("span", text.slice(end)));
    return node;
  };
  const makeExcerpt = (text) => {
    const start = Math.max(0, text.search(pattern) - MAX_EXCERPT_LENGTH);
    const end = start + 2 * MAX_EXCERPT_LENGTH + field.value.length;
    const excerpt = `${start ? "…" : ""}${text.slice(start, end)}${end < text.length ? "…" : ""}`;
    return appendMarked(make("p", "", "note excerpt"), excerpt);
  };
  const makeRow = ([title, detail, tags, text, page]) => {
    const row = document.createElement("li"), details = make("details", "", "row"), summary = make("summary", "");
    const heading = make("span", "");
    title.forEach((part, i) => heading.append(make("span", i ? " · " : ""), make("bdi", part)));
    summary.append(heading, make("span", detail, "detail"), ...tags.map(([tag, kind]) => make("span", tag, `tag ${kind}`)));
    const body = make("div", "", "body"), note = make("p", "", "note"), link = make("a", "Prompt, verdicts and costs");
    link.href = page;
    note.append(link);
    const quote = appendMarked(make("blockquote", ""), text);
    quote.dir = "auto";
    body.append(...(text ? [quote] : []), note);
    details.append(summary, body);
    row.append(details, ...(pattern ? [makeExcerpt(text)] : []));
    return row;
  };
  const showMore = () => {
    const shown = list.childElementCount;
    list.append(...matches.slice(shown, shown + MAX_NEW_ROWS).map(([group, i]) => makeRow(read(group)[i])));
    more.hidden = list.childElementCount >= matches.length;
  };

  // Texts are compared in slices of time, so that the page stays responsive; a later search ends an earlier one.
  const update = async () => {
    const run = ++lastRun, chosen = selects.flatMap((select, k) => select.value ? [[choices[k], Number(select.value)]] : []);
    pattern = makePattern(field.value.trim());
    const result = [];
    let position = 0, pauseAt = performance.now() + MAX_BLOCKING_MS;
    for (let group = 0; group < sizes.length; group++) {
      for (let i = 0; i < sizes[group]; i++, position++) {
        if (chosen.some(([column, choice]) => column[position] !== choice)) continue;
        if (!pattern || read(group)[i][3].search(pattern) >= 0) result.push([group, i]);
      }
      if (performance.now() > pauseAt) {
        status.textContent = `Searching … ${result.length.toLocaleString("en")} found`;
        await new Promise((resume) => setTimeout(resume));
        if (run !== lastRun) return;
        pauseAt = performance.now() + MAX_BLOCKING_MS;
      }
    }
    matches = result;
    list.replaceChildren();
    showMore();
    status.textContent = `Found: ${matches.length.toLocaleString("en")} of ${total.toLocaleString("en")}`;
  };
  const updateSoon = () => { clearTimeout(timer); timer = setTimeout(update, 150); };

  form.addEventListener("input", updateSoon);
  form.addEventListener("reset", updateSoon);
  form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
  more.addEventListener("click", showMore);
  section.hidden = false;
  update();
})();
