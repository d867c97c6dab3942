// A link carries its ticket behind the #, which browsers send nowhere. It is taken out of the
// address at once, and exchanged by the form, so that whoever looks at links does not use it up.
const ticket = decodeURIComponent(location.hash.slice(1));
if (ticket) {
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("enter");
  form.elements.ticket.value = ticket;
  form.requestSubmit();
}
