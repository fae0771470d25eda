export { en } from "./en.ts";
export { fa } from "./fa.ts";
export { ru } from "./ru.ts";
export { zh } from "./zh.ts";
