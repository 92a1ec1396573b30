// Draws the linked view as wide as its frame: the width in px is the signal `room` of the picture.
// Where it is small, what stands beside each other stands beneath. There are 320 px at least.
((at, spec) => {
  const frame = at.parentElement, printed = 700
  const widths = {
    names: "room < 600 ? 110 : 170",
    distribution_width: "room < 600 ? 50 : 110",
    dots_width: "room - names - distribution_width - 40",
    line_width: "room - names - 25",
    below_childWidth: "room / columns - names - 25",
    columns: "room < 700 ? 1 : 2",
  }
  const silent = mark => {
    if (mark.name?.startsWith("part_brush")) mark.aria = false // a reader of screens has the slider
    mark.marks?.forEach(silent)
  }
  const patch = vega => {
    vega.marks.forEach(silent)
    const others = vega.signals.filter(one => !(one.name in widths))
    const sized = Object.entries(widths).map(([name, update]) => ({ name, update }))
    vega.signals = [...others, ...sized]
    const below = vega.marks.find(one => one.name == "below_group")
    below.layout.columns = { signal: "columns" }
    return vega
  }
  // without `eval`, which the policy of a page forbids
  const options = { ast: true, renderer: "svg", actions: false, patch }
  vegaEmbed(at, spec, options).then(({ view }) => {
    const fit = room => room && view.signal("room", Math.max(room, 320)).resize().run()
    new ResizeObserver(() => fit(frame.clientWidth)).observe(frame)
    addEventListener("beforeprint", () => fit(printed))
    addEventListener("afterprint", () => fit(frame.clientWidth))
  })
})
