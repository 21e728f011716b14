// Builds the tree that dashboard/markup.py describes, and changes only what differs from what is
// there: scroll, focus and selection stay. Text becomes text nodes; no string is read as HTML.

const SVG = "http://www.w3.org/2000/svg"
const IN_SVG = new Set(["svg", "g", "line", "rect", "circle", "path", "text", "title"])
const TAGS = new Set([
  ...IN_SVG, "a", "b", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "h1", "h2",
  "h3", "i", "li", "mark", "nav", "ol", "p", "pre", "section", "small", "span", "strong", "summary",
  "table", "tbody", "td", "th", "thead", "time", "tr", "ul",
])
const OURS = new Set(["key", "time", "left", "gone", "most", "tau", "unit"])
const SAFE = /^(class|title|role|href|id|colspan|scope|open|datetime|tabindex|aria-[a-z]+|[xyrdc]|[xy][12]|[cr][xy]|width|height|viewBox|preserveAspectRatio|text-anchor|dominant-baseline|style)$/
const HERE = /^[a-z]*(\?[^#]*)?$/ // a page of ours, nothing that leaves or runs

const live = new WeakMap()

// The server's clock counts: a browser whose own is wrong shows the same countdowns as any other.
let skew = 0
const asked = Date.now()
fetch("_stcore/health", { method: "HEAD", cache: "no-store" }).then((answer) => {
  const server = Date.parse(answer.headers.get("Date")) + 500 // it tells whole seconds
  const off = server - (asked + Date.now()) / 2
  if (Math.abs(off) > 2000) skew = off
}, () => {})
const now = () => Date.now() + skew

function make(node) {
  if (typeof node === "string") return document.createTextNode(node)
  const tag = TAGS.has(node[0]) ? node[0] : "span"
  const element = IN_SVG.has(tag)
    ? document.createElementNS(SVG, tag)
    : document.createElement(tag)
  element.whilst = { tag, key: node[1].key }
  return element
}

function fits(there, node) {
  if (typeof node === "string") return there.nodeType === 3
  return there.whilst && there.whilst.tag === node[0] && there.whilst.key === node[1].key
}

function fill(there, node, state) {
  if (typeof node === "string") {
    if (there.data !== node) there.data = node
    return
  }
  const [, attributes, ...children] = node
  for (const { name } of [...there.attributes])
    if (!(name in attributes) && !(name === "open") && !OURS.has(name) && name !== "datetime")
      there.removeAttribute(name)
  for (const [name, value] of Object.entries(attributes)) {
    if (OURS.has(name) || !SAFE.test(name)) continue
    if (name === "href" && !HERE.test(value)) continue
    if (name === "style" && !/^--[a-z]: [0-9.]+%(; --[a-z]: [0-9.]+%){0,2}$/.test(value)) continue
    if (name === "open" && there.whilst.opened) continue // the reader opens and shuts it from now
    if (name === "open") there.whilst.opened = true
    const text = value === true ? "" : String(value)
    if (there.getAttribute(name) !== text) there.setAttribute(name, text)
  }
  if ("time" in attributes || "left" in attributes || "gone" in attributes) {
    state.clocks.add(there)
    there.whilst.at = attributes
    tick(there)
    return
  }
  patch(there, children, state)
}

function patch(parent, nodes, state) {
  const keyed = new Map()
  for (const child of parent.childNodes)
    if (child.whilst && child.whilst.key !== undefined) keyed.set(child.whilst.key, child)
  let next = parent.firstChild
  for (const node of nodes) {
    let there = next
    const key = typeof node === "string" ? undefined : node[1].key
    if (key !== undefined && keyed.has(key) && fits(keyed.get(key), node)) there = keyed.get(key)
    if (!there || !fits(there, node)) there = make(node)
    if (there === next) next = next.nextSibling
    else parent.insertBefore(there, next)
    fill(there, node, state)
  }
  while (next) {
    const after = next.nextSibling
    next.remove()
    next = after
  }
}

// --- times ----------------------------------------------------------------------------------------

const pad = (number, width = 2) => String(number).padStart(width, "0")

function shown(ms, unit) {
  const at = new Date(ms)
  const today = new Date(now()).toDateString() === at.toDateString()
  let text = `${pad(at.getHours())}:${pad(at.getMinutes())}`
  if (unit < 60000) text += `:${pad(at.getSeconds())}`
  if (unit < 1000) text += `.${pad(at.getMilliseconds(), 3)}`
  if (today) return text
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${text}`
}

function span(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000))
  const [d, h, m, s] = [
    Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60, seconds % 60,
  ]
  if (d) return `${d} d ${h} h`
  if (h) return `${h} h ${pad(m)} min`
  if (m) return `${m}:${pad(s)} min`
  return `${s} s`
}

function tick(element) {
  const { time, left, gone, most, tau, unit } = element.whilst.at
  const ms = time ?? left ?? gone
  const rest = ms - now()
  let text
  if (time !== undefined) text = shown(ms, unit ?? 1000)
  else if (left !== undefined) text = rest > 0 ? span(rest) : "due"
  else text = span(-rest)
  if (element.textContent !== text) element.textContent = text
  const at = new Date(ms)
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const hover = `${tau === undefined ? "" : `τ ${tau} · `}${at.toLocaleString()} ${zone}`
  if (element.title !== hover) element.title = hover
  if (time !== undefined && element.dateTime !== at.toISOString())
    element.dateTime = at.toISOString()
  if (left !== undefined) {
    element.classList.toggle("soon", rest > 0 && rest <= 10000)
    element.classList.toggle("due", rest <= 0)
  }
  if (most !== undefined) element.classList.toggle("bad", -rest > most)
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".whilst")
  let state = live.get(root)
  if (!state) {
    state = { clocks: new Set() }
    live.set(root, state)
    root.addEventListener("click", (event) => {
      const row = event.target.closest("tr.opens, li.opens, a[href]")
      const to = row && (row.matches("a") ? row : row.querySelector("a[href]"))
      if (!to || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
      if (!row.matches("a") && String(getSelection())) return // somebody marks text to copy it
      event.preventDefault()
      // The address first: Streamlit goes where the address went, as with the button "back".
      history.pushState({}, "", to.href)
      dispatchEvent(new PopStateEvent("popstate"))
    })
  }
  patch(root, data.nodes, state)
  clearInterval(state.timer)
  state.timer = setInterval(() => {
    for (const one of state.clocks)
      if (one.isConnected) tick(one)
      else state.clocks.delete(one)
  }, 500)
  return () => clearInterval(state.timer)
}
