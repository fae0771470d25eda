import type { SameKeys } from "#lib/words.ts";
import type { first as english } from "../en/first.ts";

export const first: SameKeys<typeof english> = {
  "use.title": "استفاده از این پروکسی",
  "use.none": "پورتی برای HTTP یا SOCKS باز نیست: mixed-port را در پیکربندی تنظیم کنید.",
  "use.for": "برای",
  "use.address": "نشانی",
  "use.shell": "Shell",
  "use.powershell": "PowerShell",
  "use.git": "Git",
  "use.copy": "کپی",
  "use.copied": "کپی شد",
  "use.shared": "دستگاه‌های دیگر هم می‌توانند با این نشانی از آن استفاده کنند.",
  "use.thisMachine":
    "فقط دستگاهی که weir روی آن اجرا می‌شود می‌تواند از آن استفاده کند؛ «Allow LAN» در تنظیمات آن را برای بقیه باز می‌کند.",
  "use.qrLabel": "کد QR نشانی پروکسی",
  "trouble.title": "آنچه خوب نیست",
  "trouble.none": "هیچ: نودها، قوانین، فهرست‌ها و لاگ آرام‌اند.",
  "trouble.show": "نمایش",
  "trouble.showOne": "نمایش: {what}",
  "trouble.unusable": { one: "{count} نود قابل استفاده نیست", other: "{count} نود قابل استفاده نیست" },
  "trouble.silent": {
    one: "{count} نود به آخرین آزمایش پاسخ نداد",
    other: "{count} نود به آخرین آزمایش پاسخ ندادند",
  },
  "trouble.deadRules": {
    one: "{count} قانون با هیچ چیز منطبق نمی‌شود",
    other: "{count} قانون با هیچ چیز منطبق نمی‌شوند",
  },
  "trouble.emptyProviders": {
    one: "{count} فهرست هرگز دریافت نشده است",
    other: "{count} فهرست هرگز دریافت نشده‌اند",
  },
  "trouble.warnings": { one: "{count} هشدار تازه در لاگ", other: "{count} هشدار تازه در لاگ" },
};
