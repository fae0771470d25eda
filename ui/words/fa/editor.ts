import type { SameKeys } from "#lib/words.ts";
import type { editor as english } from "../en/editor.ts";

export const editor: SameKeys<typeof english> = {
  "page.editor": "پیکربندی",
  "editor.text": "متن فایل پیکربندی",
  "editor.hints": "آنچه اینجا می‌تواند بیاید",
  "editor.keys":
    "`Ctrl` + `Space` نشان می‌دهد اینجا چه می‌تواند بیاید؛ معنای کلید زیر مکان‌نما (به انگلیسی) اینجا می‌آید.",
  "editor.changed": "تغییر کرده، اعمال نشده",
  "editor.discard": "دور انداختن تغییرات من",
  "editor.review": "بازبینی و اعمال",
  "editor.checking": "در حال بررسی …",
  "editor.good": "بدون خطا و هشدار",
  "editor.errors": { one: "{count} خطا", other: "{count} خطا" },
  "editor.warnings": { one: "{count} هشدار", other: "{count} هشدار" },
  "editor.error": "خطا",
  "editor.warning": "هشدار",
  "editor.changes": "تغییرات فایل",
  "editor.same": "تفاوتی نیست.",
  "editor.apply": "اعمال و نگه داشتن",
  "editor.try": { one: "اعمال برای {count} ثانیه", other: "اعمال برای {count} ثانیه" },
  "editor.trialText": {
    one: "برای {count} ثانیه: اگر نگه ندارید، پیکربندی قبلی خودبه‌خود برمی‌گردد، حتی اگر این صفحه دیگر به برنامه دسترسی نداشته باشد.",
    other:
      "برای {count} ثانیه: اگر نگه ندارید، پیکربندی قبلی خودبه‌خود برمی‌گردد، حتی اگر این صفحه دیگر به برنامه دسترسی نداشته باشد.",
  },
  "editor.trialLeft": {
    one: "آزمایشی: پیکربندی قبلی {count} ثانیهٔ دیگر برمی‌گردد.",
    other: "آزمایشی: پیکربندی قبلی {count} ثانیهٔ دیگر برمی‌گردد.",
  },
  "editor.keep": "نگه دار",
  "editor.cancelTrial": "برگردان",
  "editor.onTrial": "به‌طور آزمایشی اعمال شد",
  "editor.applied": "اعمال و در فایل نوشته شد",
  "editor.takenBack": "پیکربندی قبلی دوباره برقرار است",
  "editor.notApplied": "چیزی تغییر نکرد",
  "editor.notEnded": "آزمایش ادامه دارد",
  "editor.versions": "نسخه‌های پیشین",
  "editor.noVersions": "از نخستین تغییر، ده نسخهٔ آخر کنار فایل نگه داشته می‌شود.",
  "editor.version": "نسخهٔ {version}",
  "editor.versionTitle": "بازگشت به نسخهٔ {version}",
  "editor.versionGone": "این نسخه خوانده نمی‌شود",
  "editor.compare": "مقایسه",
  "editor.compareOne": "مقایسهٔ نسخهٔ {version}",
};
