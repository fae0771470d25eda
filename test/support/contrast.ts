/** How well the controls of a page can be read, computed by the browser that shows them. */
import type { CDPSession, Page } from "playwright-core";

export interface Contrast {
  readonly control: string;
  readonly state: string;
  readonly text: string;
  readonly ratio: number;
}

export const STATES = ["at rest", "under the pointer", "pressed", "with the focus", "disabled"] as const;
type State = (typeof STATES)[number];

const PSEUDO: Readonly<Record<State, readonly string[]>> = {
  "at rest": [],
  "under the pointer": ["hover"],
  pressed: ["hover", "active"],
  "with the focus": ["focus", "focus-visible"],
  disabled: ["hover"],
};

/**
 * Every text, icon and placeholder of every control in sight, in one state. What lies on the way up is in that state,
 * too, as under a real pointer. The page is as before afterwards.
 */
export async function contrasts(page: Page, state: State): Promise<readonly Contrast[]> {
  const session = await page.context().newCDPSession(page);
  await session.send("DOM.enable");
  await session.send("CSS.enable");
  if (state === "disabled") await page.evaluate(DISABLE);
  const force = await forcer(session);
  await force(PSEUDO[state]);
  const found = (await page.evaluate(MEASURE)) as readonly Omit<Contrast, "state">[];
  await force([]);
  if (state === "disabled") await page.evaluate(ENABLE);
  await session.detach();
  return found.map((one) => ({ ...one, state }));
}

async function forcer(session: CDPSession) {
  const { root } = await session.send("DOM.getDocument", { depth: -1 });
  const { nodeIds } = await session.send("DOM.querySelectorAll", { nodeId: root.nodeId, selector: "*" });
  return async (forcedPseudoClasses: readonly string[]): Promise<void> => {
    const forced = [...forcedPseudoClasses];
    await Promise.all(
      nodeIds.map((nodeId) =>
        session.send("CSS.forcePseudoState", { nodeId, forcedPseudoClasses: forced }).catch(() => {}),
      ), // a page that lives may have dropped a node meanwhile
    );
  };
}

const CONTROLS = `button, a[href], input:not([type=checkbox], [type=radio], [type=file]), select, summary, textarea`;

const DISABLE = `for (const one of document.querySelectorAll("button:not(:disabled), input:not(:disabled), select:not(:disabled)")) {
  one.disabled = true; one.dataset.made = "disabled";
}`;
const ENABLE = `for (const one of document.querySelectorAll("[data-made]")) { one.disabled = false; delete one.dataset.made; }`;

/** WCAG 2 §1.4.3, with what lies beneath painted as the browser does: grounds one over the other, opacity by element. */
const MEASURE = `(() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const mix = (from, to, share) => ({
    r: from.r + (to.r - from.r) * share, g: from.g + (to.g - from.g) * share, b: from.b + (to.b - from.b) * share,
  });
  const over = (top, under) => mix(under, top, top.a);
  const linear = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = ({ r, g, b }) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const sheet = dark ? { r: 18, g: 18, b: 18 } : { r: 255, g: 255, b: 255 };
  const paint = (chain, at, under, ink) => {
    if (at === chain.length) return ink === null ? under : over(ink, under);
    const style = getComputedStyle(chain[at]);
    if (style.filter !== "none" || style.backgroundImage !== "none") throw new Error("cannot compute " + chain[at].outerHTML);
    const inner = paint(chain, at + 1, over(rgba(style.backgroundColor), under), ink);
    return mix(under, inner, Number(style.opacity));
  };
  const ratioOf = (element, colour) => {
    const chain = [];
    for (let one = element; one !== null; one = one.parentElement) chain.unshift(one);
    const a = luminance(paint(chain, 0, sheet, rgba(colour)));
    const b = luminance(paint(chain, 0, sheet, null));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const found = [];
  const note = (control, element, colour, text) => {
    const label = control.getAttribute("aria-label") ?? control.textContent.trim() ?? "";
    const name = control.tagName.toLowerCase() + "." + control.className + " " + JSON.stringify(label.slice(0, 40));
    found.push({ control: name, text: text.slice(0, 40), ratio: ratioOf(element, colour) });
  };
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  for (const control of document.querySelectorAll(${JSON.stringify(CONTROLS)})) {
    if (!isShown(control)) continue;
    if (control.matches("input, textarea, select")) {
      note(control, control, getComputedStyle(control).color, control.value || "value");
      if (control.placeholder)
        note(control, control, getComputedStyle(control, "::placeholder").color, control.placeholder);
      continue;
    }
    for (const icon of control.querySelectorAll("svg")) note(control, icon.parentElement, getComputedStyle(icon).color, "icon");
    const walker = document.createTreeWalker(control, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
      if (node.data.trim() !== "" && isShown(node.parentElement))
        note(control, node.parentElement, getComputedStyle(node.parentElement).color, node.data.trim());
  }
  return found;
})()`;
