"""Sentences with room for personal data, by language: those to train on, an empty line, to tune on, again, to test on.

{PERSON} and the other names in capitals are entities; {number}, {amount}, {code}, {time} and {thing} (a name that is no
person's) look like them and are none.
"""

SPLITS = ("train", "dev", "test")

ENGLISH = """
Please call {PERSON} on {PHONE} before noon.
My name is {PERSON} and I live at {ADDRESS}.
You can write to me at {EMAIL} or ring {PHONE}.
{PERSON} has worked for {COMPANY} since {DATE}.
The parcel for {PERSON} goes to {ADDRESS}, order {code}.
Transfer {amount} to {IBAN}, account holder {PERSON}.
I paid with my card {CARD} on {DATE}.
{COMPANY} moved its office to {ADDRESS}.
Dear Ms {PERSON}, thank you for your letter of {DATE}.
Hi {PERSON}, did {PERSON} send you the {number} pages?
From: {PERSON} <{EMAIL}>
Tel. {PHONE}, e-mail {EMAIL}
The contract between {COMPANY} and {COMPANY} was signed on {DATE}.
Date of birth: {DATE}, residence: {ADDRESS}.
Invoice {code} from {COMPANY}, due {DATE}, total {amount}.
I asked {PERSON}'s sister whether {COMPANY} is still hiring.
Our new IBAN is {IBAN}; please delete the old one.
The customer gave us {CARD} as the number of the card.
We met {PERSON} and {PERSON} at {time} in front of {ADDRESS}.
Will you mark the page that I read last May?
The {thing} opens at {time} and closes {number} minutes later.
Version {number} of {thing} needs {number} MB of memory.
Nobody answered, so I left a message and went home.
There are {number} people in room {number}, and the bill is {amount}.
{thing} is my favourite, but Rose Street was too crowded.
Ask for {PERSON} at the desk; your code is {code}.
if you see {PERSON} tell her that {EMAIL} bounced
{PERSON}, {ADDRESS}, {PHONE}
Does {COMPANY} still answer at {PHONE}?
Since {DATE} all mail for {COMPANY} goes to {EMAIL}.

Could {PERSON} from {COMPANY} reach me at {PHONE} by {time}?
{PERSON} was born on {DATE} and grew up near {ADDRESS}.
Refund {amount} to the card {CARD} or to {IBAN}.
Send the {number} copies of {thing} to {EMAIL}, please.
The train left at {time} from platform {number}.
Grace under pressure is what {thing} teaches.

On {DATE} the director of {COMPANY}, {PERSON}, resigned.
Forward everything to {EMAIL} and copy {PERSON}.
Our address has been {ADDRESS} for {number} years; the telephone is still {PHONE}.
Card {CARD} was blocked after {number} attempts.
{PERSON} asked {COMPANY} to pay {amount} into {IBAN}.
In case of fire take exit {number}, never the lift.
Did you like {thing}, or was it too long?
A hundred guests came, {PERSON} among them, and left at {time}.
"""

GERMAN = """
Bitte rufen Sie {PERSON} unter {PHONE} an.
Mein Name ist {PERSON} und ich wohne in der {ADDRESS}.
Schreiben Sie an {EMAIL} oder wählen Sie {PHONE}.
{PERSON} arbeitet seit dem {DATE} bei {COMPANY}.
Das Paket für {PERSON} geht an {ADDRESS}, Bestellung {code}.
Überweisen Sie {amount} auf {IBAN}, Inhaber {PERSON}.
Ich habe am {DATE} mit der Karte {CARD} bezahlt.
{COMPANY} ist nach {ADDRESS} umgezogen.
Sehr geehrte Frau {PERSON}, vielen Dank für Ihr Schreiben vom {DATE}.
Hallo {PERSON}, hat {PERSON} dir die {number} Seiten geschickt?
Von: {PERSON} <{EMAIL}>
Tel.: {PHONE}, E-Mail: {EMAIL}
Der Vertrag zwischen {COMPANY} und {COMPANY} wurde am {DATE} geschlossen.
Geburtsdatum: {DATE}, Anschrift: {ADDRESS}.
Rechnung {code} von {COMPANY}, fällig am {DATE}, Summe {amount}.
Ich fragte die Schwester von {PERSON}, ob {COMPANY} noch jemanden sucht.
Unsere neue IBAN lautet {IBAN}; die alte bitte löschen.
Als Kartennummer hat der Kunde {CARD} angegeben.
Wir trafen {PERSON} und {PERSON} um {time} vor dem Haus {ADDRESS}.
Im Sommer fährt der Müller sein Mehl selbst in die Stadt.
Das {thing} öffnet um {time} und schließt {number} Minuten später.
Version {number} von {thing} braucht {number} MB Speicher.
Niemand ging ans Telefon, also fuhr ich nach Hause.
In Zimmer {number} sitzen {number} Leute, die Rechnung beträgt {amount}.
{thing} gefällt mir, aber der Weg dorthin ist weit.
Fragen Sie am Empfang nach {PERSON}; Ihr Kennwort ist {code}.
wenn du {PERSON} siehst sag ihr dass {EMAIL} nicht mehr geht
{PERSON}, {ADDRESS}, {PHONE}
Ist {COMPANY} noch unter {PHONE} zu erreichen?
Seit dem {DATE} geht alle Post für {COMPANY} an {EMAIL}.

Kann mich {PERSON} von {COMPANY} bis {time} unter {PHONE} erreichen?
{PERSON} kam am {DATE} zur Welt und wuchs nahe {ADDRESS} auf.
Erstatten Sie {amount} auf die Karte {CARD} oder auf {IBAN}.
Die {number} Abzüge von {thing} bitte an {EMAIL}.
Der Zug fuhr um {time} von Gleis {number} ab.
Geduld und Fleiß lernt man bei {thing}.

Am {DATE} trat {PERSON}, die Leiterin von {COMPANY}, zurück.
Leiten Sie alles an {EMAIL} weiter, in Kopie an {PERSON}.
Unsere Adresse ist seit {number} Jahren {ADDRESS}, das Telefon weiterhin {PHONE}.
Die Karte {CARD} wurde nach {number} Versuchen gesperrt.
{PERSON} bat {COMPANY}, {amount} auf {IBAN} zu zahlen.
Bei Feuer bitte Ausgang {number} nehmen, nie den Aufzug.
Hat dir {thing} gefallen, oder war es zu lang?
Hundert Gäste kamen, darunter {PERSON}, und gingen um {time}.
"""

FRENCH = """
Merci d'appeler {PERSON} au {PHONE} avant midi.
Je m'appelle {PERSON} et j'habite {ADDRESS}.
Écrivez-moi à {EMAIL} ou téléphonez au {PHONE}.
{PERSON} travaille chez {COMPANY} depuis le {DATE}.
Le colis de {PERSON} part pour {ADDRESS}, commande {code}.
Virez {amount} sur le compte {IBAN}, titulaire {PERSON}.
J'ai payé le {DATE} avec ma carte {CARD}.
{COMPANY} a déménagé au {ADDRESS}.
Chère Madame {PERSON}, merci de votre lettre du {DATE}.
Salut {PERSON}, est-ce que {PERSON} t'a envoyé les {number} pages ?
De : {PERSON} <{EMAIL}>
Tél. {PHONE}, courriel {EMAIL}
Le contrat entre {COMPANY} et {COMPANY} a été signé le {DATE}.
Né le {DATE}, domicilié {ADDRESS}.
Facture {code} de {COMPANY}, à payer le {DATE}, total {amount}.
J'ai demandé à la sœur de {PERSON} si {COMPANY} recrute encore.
Notre nouvel IBAN est {IBAN} ; oubliez l'ancien.
Le client a donné {CARD} comme numéro de carte.
Nous avons vu {PERSON} et {PERSON} à {time} devant le {ADDRESS}.
Cet été, le boulanger a repeint la Maison du Peuple.
Le {thing} ouvre à {time} et ferme {number} minutes plus tard.
La version {number} de {thing} demande {number} Mo de mémoire.
Personne n'a répondu, alors je suis rentré.
Il y a {number} personnes dans la salle {number}, pour {amount} en tout.
{thing} me plaît, mais la route est longue.
Demandez {PERSON} à l'accueil ; votre code est {code}.
si tu vois {PERSON} dis-lui que {EMAIL} ne marche plus
{PERSON}, {ADDRESS}, {PHONE}
Peut-on encore joindre {COMPANY} au {PHONE} ?
Depuis le {DATE}, le courrier de {COMPANY} va à {EMAIL}.

Est-ce que {PERSON} de {COMPANY} peut me joindre au {PHONE} avant {time} ?
{PERSON} est née le {DATE} et a grandi près du {ADDRESS}.
Remboursez {amount} sur la carte {CARD} ou sur {IBAN}.
Envoyez les {number} exemplaires de {thing} à {EMAIL}.
Le train est parti à {time} du quai {number}.
La patience, voilà ce qu'enseigne {thing}.

Le {DATE}, {PERSON}, à la tête de {COMPANY}, a démissionné.
Transférez tout à {EMAIL} avec {PERSON} en copie.
Notre adresse reste {ADDRESS} après {number} ans, et le numéro {PHONE}.
La carte {CARD} est bloquée après {number} essais.
{PERSON} a prié {COMPANY} de verser {amount} sur {IBAN}.
En cas de feu, prenez la sortie {number}, jamais l'ascenseur.
As-tu aimé {thing}, ou était-ce trop long ?
Cent invités sont venus, dont {PERSON}, et repartis à {time}.
"""

SPANISH = """
Llame a {PERSON} al {PHONE} antes del mediodía.
Me llamo {PERSON} y vivo en {ADDRESS}.
Escríbame a {EMAIL} o llame al {PHONE}.
{PERSON} trabaja en {COMPANY} desde el {DATE}.
El paquete de {PERSON} va a {ADDRESS}, pedido {code}.
Transfiera {amount} a la cuenta {IBAN}, titular {PERSON}.
Pagué el {DATE} con mi tarjeta {CARD}.
{COMPANY} se ha mudado a {ADDRESS}.
Estimada señora {PERSON}: gracias por su carta del {DATE}.
Hola {PERSON}, ¿te ha mandado {PERSON} las {number} páginas?
De: {PERSON} <{EMAIL}>
Tel. {PHONE}, correo {EMAIL}
El contrato entre {COMPANY} y {COMPANY} se firmó el {DATE}.
Fecha de nacimiento: {DATE}, domicilio: {ADDRESS}.
Factura {code} de {COMPANY}, vence el {DATE}, total {amount}.
Pregunté a la hermana de {PERSON} si {COMPANY} busca gente.
Nuestro nuevo IBAN es {IBAN}; borre el antiguo.
El cliente dio {CARD} como número de tarjeta.
Vimos a {PERSON} y a {PERSON} a las {time} delante de {ADDRESS}.
En verano el herrero cerró la Casa de las Flores.
El {thing} abre a las {time} y cierra {number} minutos después.
La versión {number} de {thing} necesita {number} MB de memoria.
Nadie contestó, así que me fui a casa.
Hay {number} personas en la sala {number} y la cuenta suma {amount}.
{thing} me gusta, pero queda lejos.
Pregunte por {PERSON} en recepción; su clave es {code}.
si ves a {PERSON} dile que {EMAIL} ya no funciona
{PERSON}, {ADDRESS}, {PHONE}
¿Se puede localizar a {COMPANY} en el {PHONE}?
Desde el {DATE} el correo de {COMPANY} llega a {EMAIL}.

¿Puede {PERSON}, de {COMPANY}, llamarme al {PHONE} antes de las {time}?
{PERSON} nació el {DATE} y creció cerca de {ADDRESS}.
Devuelva {amount} a la tarjeta {CARD} o a {IBAN}.
Mande las {number} copias de {thing} a {EMAIL}.
El tren salió a las {time} del andén {number}.
Paciencia es lo que enseña {thing}.

El {DATE} dimitió {PERSON}, directora de {COMPANY}.
Reenvíe todo a {EMAIL} con copia a {PERSON}.
Nuestra dirección sigue siendo {ADDRESS} tras {number} años, y el teléfono, {PHONE}.
La tarjeta {CARD} quedó bloqueada tras {number} intentos.
{PERSON} pidió a {COMPANY} que ingresara {amount} en {IBAN}.
En caso de incendio use la salida {number}, nunca el ascensor.
¿Te gustó {thing} o fue demasiado largo?
Vinieron cien invitados, entre ellos {PERSON}, y se fueron a las {time}.
"""

ITALIAN = """
Chiami {PERSON} al {PHONE} prima di mezzogiorno.
Mi chiamo {PERSON} e abito in {ADDRESS}.
Mi scriva a {EMAIL} o telefoni al {PHONE}.
{PERSON} lavora per {COMPANY} dal {DATE}.
Il pacco di {PERSON} va in {ADDRESS}, ordine {code}.
Versi {amount} sul conto {IBAN}, intestato a {PERSON}.
Ho pagato il {DATE} con la carta {CARD}.
{COMPANY} si è trasferita in {ADDRESS}.
Gentile signora {PERSON}, grazie della lettera del {DATE}.
Ciao {PERSON}, ti ha mandato {PERSON} le {number} pagine?
Da: {PERSON} <{EMAIL}>
Tel. {PHONE}, posta {EMAIL}
Il contratto tra {COMPANY} e {COMPANY} è stato firmato il {DATE}.
Data di nascita: {DATE}, residenza: {ADDRESS}.
Fattura {code} di {COMPANY}, scadenza {DATE}, totale {amount}.
Ho chiesto alla sorella di {PERSON} se {COMPANY} assume ancora.
Il nostro nuovo IBAN è {IBAN}; cancelli il vecchio.
Il cliente ha dato {CARD} come numero della carta.
Abbiamo visto {PERSON} e {PERSON} alle {time} davanti a {ADDRESS}.
D'estate il fornaio ridipinge la Casa dei Fiori.
Il {thing} apre alle {time} e chiude {number} minuti dopo.
La versione {number} di {thing} richiede {number} MB di memoria.
Nessuno ha risposto, così sono tornato a casa.
Ci sono {number} persone nella sala {number} e il conto è di {amount}.
{thing} mi piace, ma è lontano.
Chieda di {PERSON} all'ingresso; il suo codice è {code}.
se vedi {PERSON} dille che {EMAIL} non funziona più
{PERSON}, {ADDRESS}, {PHONE}
Si trova ancora {COMPANY} al {PHONE}?
Dal {DATE} la posta di {COMPANY} arriva a {EMAIL}.

Può {PERSON} di {COMPANY} chiamarmi al {PHONE} entro le {time}?
{PERSON} è nata il {DATE} ed è cresciuta vicino a {ADDRESS}.
Rimborsi {amount} sulla carta {CARD} oppure su {IBAN}.
Mandi le {number} copie di {thing} a {EMAIL}.
Il treno è partito alle {time} dal binario {number}.
La pazienza è ciò che insegna {thing}.

Il {DATE} si è dimessa {PERSON}, a capo di {COMPANY}.
Inoltri tutto a {EMAIL} con copia a {PERSON}.
Il nostro indirizzo è sempre {ADDRESS} dopo {number} anni, il telefono {PHONE}.
La carta {CARD} è bloccata dopo {number} tentativi.
{PERSON} ha pregato {COMPANY} di versare {amount} su {IBAN}.
In caso d'incendio usare l'uscita {number}, mai l'ascensore.
Ti è piaciuto {thing}, o era troppo lungo?
Sono venuti cento ospiti, tra cui {PERSON}, e sono usciti alle {time}.
"""

DUTCH = """
Bel {PERSON} voor de middag op {PHONE}.
Ik heet {PERSON} en woon op {ADDRESS}.
Schrijf naar {EMAIL} of bel {PHONE}.
{PERSON} werkt sinds {DATE} bij {COMPANY}.
Het pakje voor {PERSON} gaat naar {ADDRESS}, bestelling {code}.
Maak {amount} over op {IBAN}, ten name van {PERSON}.
Ik heb op {DATE} met kaart {CARD} betaald.
{COMPANY} is verhuisd naar {ADDRESS}.
Geachte mevrouw {PERSON}, dank voor uw brief van {DATE}.
Hoi {PERSON}, heeft {PERSON} je de {number} bladzijden gestuurd?
Van: {PERSON} <{EMAIL}>
Tel. {PHONE}, e-mail {EMAIL}
Het contract tussen {COMPANY} en {COMPANY} is op {DATE} getekend.
Geboren op {DATE}, woonachtig te {ADDRESS}.
Factuur {code} van {COMPANY}, te betalen voor {DATE}, totaal {amount}.
Ik vroeg de zus van {PERSON} of {COMPANY} nog mensen zoekt.
Ons nieuwe IBAN is {IBAN}; wis het oude.
De klant gaf {CARD} op als kaartnummer.
We zagen {PERSON} en {PERSON} om {time} voor {ADDRESS}.
In de zomer verft de bakker het Huis met de Rozen.
Het {thing} gaat om {time} open en {number} minuten later dicht.
Versie {number} van {thing} vraagt {number} MB geheugen.
Niemand nam op, dus ging ik naar huis.
In zaal {number} zitten {number} mensen en de rekening is {amount}.
{thing} vind ik mooi, maar het is ver weg.
Vraag bij de balie naar {PERSON}; uw code is {code}.
als je {PERSON} ziet zeg dan dat {EMAIL} niet meer werkt
{PERSON}, {ADDRESS}, {PHONE}
Is {COMPANY} nog te bereiken op {PHONE}?
Sinds {DATE} gaat de post voor {COMPANY} naar {EMAIL}.

Kan {PERSON} van {COMPANY} mij voor {time} bellen op {PHONE}?
{PERSON} kwam op {DATE} ter wereld en groeide op bij {ADDRESS}.
Stort {amount} terug op kaart {CARD} of op {IBAN}.
Stuur de {number} kopieën van {thing} naar {EMAIL}.
De trein vertrok om {time} van spoor {number}.
Geduld is wat {thing} je leert.

Op {DATE} stapte {PERSON} op als hoofd van {COMPANY}.
Stuur alles door aan {EMAIL} met {PERSON} in kopie.
Ons adres is na {number} jaar nog steeds {ADDRESS}, de telefoon {PHONE}.
Kaart {CARD} is geblokkeerd na {number} pogingen.
{PERSON} verzocht {COMPANY} om {amount} te storten op {IBAN}.
Neem bij brand uitgang {number}, nooit de lift.
Vond je {thing} goed, of duurde het te lang?
Er kwamen honderd gasten, onder wie {PERSON}, en ze gingen om {time}.
"""

PORTUGUESE = """
Ligue para {PERSON} no {PHONE} antes do meio-dia.
Chamo-me {PERSON} e moro em {ADDRESS}.
Escreva para {EMAIL} ou ligue para {PHONE}.
{PERSON} trabalha na {COMPANY} desde {DATE}.
A encomenda de {PERSON} vai para {ADDRESS}, pedido {code}.
Transfira {amount} para a conta {IBAN}, titular {PERSON}.
Paguei em {DATE} com o cartão {CARD}.
A {COMPANY} mudou-se para {ADDRESS}.
Cara senhora {PERSON}, obrigado pela carta de {DATE}.
Olá {PERSON}, a {PERSON} mandou as {number} páginas?
De: {PERSON} <{EMAIL}>
Tel. {PHONE}, correio {EMAIL}
O contrato entre {COMPANY} e {COMPANY} foi assinado em {DATE}.
Data de nascimento: {DATE}, morada: {ADDRESS}.
Fatura {code} de {COMPANY}, vence em {DATE}, total {amount}.
Perguntei à irmã de {PERSON} se a {COMPANY} ainda contrata.
O nosso novo IBAN é {IBAN}; apague o antigo.
O cliente indicou {CARD} como número do cartão.
Vimos {PERSON} e {PERSON} às {time} em frente de {ADDRESS}.
No verão o padeiro pintou a Casa das Flores.
O {thing} abre às {time} e fecha {number} minutos depois.
A versão {number} de {thing} precisa de {number} MB de memória.
Ninguém atendeu, por isso fui para casa.
Há {number} pessoas na sala {number} e a conta é de {amount}.
{thing} agrada-me, mas fica longe.
Pergunte por {PERSON} na entrada; o seu código é {code}.
se vires {PERSON} diz que {EMAIL} já não funciona
{PERSON}, {ADDRESS}, {PHONE}
Ainda se encontra a {COMPANY} no {PHONE}?
Desde {DATE} o correio da {COMPANY} vai para {EMAIL}.

Pode {PERSON}, da {COMPANY}, ligar-me no {PHONE} até às {time}?
{PERSON} nasceu em {DATE} e cresceu perto de {ADDRESS}.
Devolva {amount} no cartão {CARD} ou em {IBAN}.
Envie as {number} cópias de {thing} para {EMAIL}.
O comboio partiu às {time} da linha {number}.
Paciência é o que {thing} ensina.

Em {DATE} demitiu-se {PERSON}, à frente da {COMPANY}.
Reencaminhe tudo para {EMAIL} com cópia a {PERSON}.
O nosso endereço continua {ADDRESS} após {number} anos, e o telefone {PHONE}.
O cartão {CARD} ficou bloqueado após {number} tentativas.
{PERSON} pediu à {COMPANY} que pagasse {amount} em {IBAN}.
Em caso de incêndio use a saída {number}, nunca o elevador.
Gostou de {thing}, ou foi longo demais?
Vieram cem convidados, entre eles {PERSON}, e saíram às {time}.
"""

THINGS = """
en Blue Harbour, Town Museum, Windows, Green Valley, Old Bridge, Monopoly, Night Market
en River Path, Opera
en Atlas, Moon Bay
de Alte Museum, Rathaus, Windows, Schloss, Kino am Markt, Freibad, Monopoly, Deutschlandticket
de Stadtarchiv, Opernhaus
de Theater, Neue Lager
fr Vieux Port, Musée, Louvre, Windows, Grand Hôtel, Monopoly, Jardin Botanique, Cirque
fr Pont Neuf, Opéra
fr Planétarium, Marché Couvert
es Museo, Mercado Central, Windows, Puerto Viejo, Teatro Real, Monopoly, Jardín Botánico, Circo
es Puente Nuevo, Prado
es Planetario, Faro
it Museo, Mercato Vecchio, Windows, Porto Nuovo, Colosseo, Monopoly, Giardino Botanico, Circo
it Ponte Vecchio, Duomo
it Planetario, Faro
nl Stadsmuseum, Oude Haven, Windows, Concertgebouw, Zwembad, Monopoly, Marktplein, Circus
nl Stadhuis, Planetarium
nl Nieuwe Park, Slot
pt Museu, Mercado Velho, Windows, Porto Novo, Jardim Botânico, Monopoly, Teatro, Circo
pt Farol, Planetário
pt Palácio Real, Arquivo
"""

TEMPLATES = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "it": ITALIAN,
    "nl": DUTCH,
    "pt": PORTUGUESE,
}


def templates(language: str) -> dict[str, list[str]]:
    """The templates of a language by split.

    >>> templates("de")["test"][0]
    'Am {DATE} trat {PERSON}, die Leiterin von {COMPANY}, zurück.'
    """
    parts = TEMPLATES[language].strip().split("\n\n")
    return {split: part.split("\n") for split, part in zip(SPLITS, parts, strict=True)}


def things(language: str) -> dict[str, list[str]]:
    """Names of a language that are no person's, by split.

    >>> things("nl")["test"]
    ['Nieuwe Park', 'Slot']
    """
    lines = [line[3:].split(", ") for line in THINGS.splitlines() if line.startswith(f"{language} ")]
    return dict(zip(SPLITS, lines, strict=True))
