// What the tests ask of the page: JupyterLab's own application object, behind short names.
window.seen = {
  cells: () => window.jupyterapp?.shell?.currentWidget?.content?.widgets ?? [],
  session: () => window.jupyterapp?.shell?.currentWidget?.sessionContext,
  code: () => seen.cells().filter((cell) => cell.model.type === "code" && cell.model.sharedModel.getSource().trim()),
  outputs: (cell) => cell.model.outputs.toJSON(),
  ready: () => seen.session()?.isReady && seen.session().session?.kernel?.connectionStatus === "connected" && seen.cells().length > 0,
  cleared: () => seen.code().every((cell) => !cell.model.executionCount),
  done: () =>
    seen.session()?.session?.kernel?.status === "idle" && (seen.code().every((cell) => cell.model.executionCount) || seen.errors().length > 0),
  errors: () =>
    seen.code().flatMap((cell) => {
      const first = cell.model.sharedModel.getSource().split("\n")[0];
      return seen.outputs(cell).filter((one) => one.output_type === "error").map((one) => `${one.ename}: ${one.evalue}, in ${first}`);
    }),
  // The cells that show an explorer: a live widget, whose text says so.
  panels: () => {
    const widget = (one) => "application/vnd.jupyter.widget-view+json" in (one.data ?? {}) && `${one.data["text/plain"]}`.startsWith("explorer at");
    return seen.code().filter((cell) => seen.outputs(cell).some(widget)).map((cell) => seen.cells().indexOf(cell));
  },
  // Whether every figure of an explorer has something to show.
  drawn: (panel) => {
    const plots = [...(panel?.querySelectorAll(".js-plotly-plot") ?? [])];
    return plots.length > 0 && plots.every((plot) => plot.data?.length > 0 && plot.querySelector(".main-svg"));
  },
  // What figures and words of an explorer look like, without the random names that plotly gives to its clips.
  text: (panel, parts) => [...panel.querySelectorAll(parts)].map((part) => part.innerHTML.replace(/[0-9a-f]{6,}/g, "")).join(""),
  shown: (panel) => seen.text(panel, ".main-svg, .widget-html-content"),
  // What its figures draw, whatever plotly calls their parts and writes down of its own when they are changed.
  own: ["uid", "autocontour", "zauto"],
  pictures: (panel) => {
    const sorted = (value) => (value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value);
    const plain = (name, value) => (seen.own.includes(name) || name.startsWith("_") ? undefined : sorted(value));
    return [...panel.querySelectorAll(".js-plotly-plot")].map((plot) => JSON.stringify([plot.data, plot.layout.title?.text], plain)).join("");
  },
  refused: (panel) => [...panel.querySelectorAll("[role=alert]")].map((one) => one.innerText).join("; "),
};
