// Loads the page again, unless somebody is about to withdraw a person.
setInterval(() => { if (!document.querySelector("details[open]")) location.reload(); }, 15000);
